"""Wiki and HTML markup in text: found, and taken out.

What extraction leaves behind in dumps and crawls: links, templates, tags, entities, references. It
teaches an encoder brackets instead of words. Only names that HTML or MediaWiki has count as tags:
`<s>`, `a < b` and e-mail addresses in angle brackets stay as they are.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_NAMES = (
    "a|abbr|article|b|big|blockquote|body|br|caption|center|cite|code|dd|div|dl|doc|dt|em|font|"
    "footer|gallery|h[1-6]|head|header|hiero|hr|html|i|img|imagemap|includeonly|li|link|mapframe|"
    "math|meta|nav|noinclude|nowiki|ol|onlyinclude|p|poem|pre|ref|references|score|script|section|"
    "small|span|strong|style|sub|sup|syntaxhighlight|table|tbody|td|templatestyles|th|thead|"
    "timeline|title|tr|tt|u|ul"
)
_WHOLE = "ref|math|gallery|script|style|timeline|syntaxhighlight|templatestyles|imagemap|score"
_ENTITY = r"&(?:[a-zA-Z]{2,8}|#\d{1,6}|#x[0-9a-fA-F]{1,5});"
_VALUE = r"""(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+)"""
_ATTRIBUTES = rf"(?:\s+[\w:-]+\s*=\s*{_VALUE})*\s*"  # with values: a<b and c>d is no tag
_TAG = rf"</?(?:{_NAMES}){_ATTRIBUTES}/?>"
_FOUND = re.compile(
    rf"\[\[[^\[\]\n]+\]\]|\{{\{{[^{{}}\n]+\}}\}}|{_ENTITY}|{_TAG}|'''|__[A-Z]{{5,}}__",
    re.IGNORECASE,
)
_OPENING = re.compile(rf"<({_WHOLE}){_ATTRIBUTES}/?>", re.IGNORECASE)
_CLOSING = re.compile(rf"</({_WHOLE})\s*>", re.IGNORECASE)
_LONGEST_ELEMENT = 20_000  # characters; what closes later was left open by mistake
_BREAK = re.compile(rf"<(?:br|hr|p|div|li|tr){_ATTRIBUTES}/?>", re.IGNORECASE)
_ANY_TAG = re.compile(_TAG, re.IGNORECASE)
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
_MEDIA = re.compile(r"\[\[(?:[^\[\]|:\n]{2,20}):(?:[^\[\]]|\[\[[^\[\]]*\]\])*\]\]")
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_OUTER_LINK = re.compile(r"\[(?:https?:)?//[^\s\]]+(?:\s+([^\]]*))?\]")
_QUOTES = re.compile(r"'{2,5}")
_HEADING = re.compile(r"^(={2,6})\s*(.*?)\s*\1\s*$", re.MULTILINE)
_SWITCH = re.compile(r"__[A-Z]{5,}__")
_SPACES = re.compile(r"[ \t\u00a0]{2,}|\u00a0")
_DEPTH = 5  # templates within templates


def find_markup(text: str) -> str:
    """The first piece of markup in a text; "" where there is none."""
    found = _FOUND.search(text)
    return found[0] if found else ""


def strip_markup(text: str) -> str:
    """The text without markup: links as their words, references and templates left out."""
    if not find_markup(text) and "==" not in text and "<!--" not in text:
        return text
    for _ in range(2):  # dumps escape their own markup: &lt;ref&gt;
        text = _without_tags(text)
        unescaped = html.unescape(text)
        if unescaped == text:
            break
        text = unescaped
    for _ in range(_DEPTH):
        text, count = _TEMPLATE.subn("", text)
        if not count:
            break
    text = _LINK.sub(r"\1", _MEDIA.sub("", text))
    text = _OUTER_LINK.sub(lambda found: found[1] or "", text)
    text = _SWITCH.sub("", _HEADING.sub(r"\2", _QUOTES.sub("", text)))
    return "\n".join(_SPACES.sub(" ", line).strip() for line in text.split("\n")).strip()


def _without_tags(text: str) -> str:
    text = _without_elements(_without_comments(text))
    return _ANY_TAG.sub("", _BREAK.sub("\n", text))


def _without_comments(text: str) -> str:
    kept, position = [], 0
    while (start := text.find("<!--", position)) >= 0:
        end = text.find("-->", start + 4)
        if end < 0:  # nor does any later one end
            break
        closed = end - start <= _LONGEST_ELEMENT
        kept.append(text[position : start if closed else start + 4])
        position = end + 3 if closed else start + 4
    return "".join([*kept, text[position:]])


def _without_elements(text: str) -> str:
    """Without references, formulas and the like. Each tag is looked at once, however many open."""
    closings: dict[str, list[tuple[int, int]]] = {}
    for closing in _CLOSING.finditer(text):
        closings.setdefault(closing[1].lower(), []).append(closing.span())
    kept, position = [], 0
    for opening in _OPENING.finditer(text):
        if opening.start() < position:
            continue
        end = opening.end()
        if not opening[0].endswith("/>"):
            ends = closings.get(opening[1].lower(), [])
            place = bisect_left(ends, (end, end))
            if place == len(ends) or ends[place][0] - end > _LONGEST_ELEMENT:
                continue
            end = ends[place][1]
        kept.append(text[position : opening.start()])
        position = end
    return "".join([*kept, text[position:]])


@dataclass(frozen=True)
class MarkupCount:
    """How many of some texts hold markup, and pieces of it."""

    texts: int
    marked: int
    samples: tuple[str, ...]

    @property
    def is_much(self) -> bool:
        """Whether it is more than an accident: one text in a hundred."""
        return self.marked * 100 >= max(self.texts, 1)

    def listed(self) -> str:
        return ", ".join(f"`{one[:30]}`" for one in self.samples)


def count_markup(texts: Iterable[str]) -> MarkupCount:
    """Look for markup in texts."""
    count, found = 0, list[str]()
    for text in texts:
        count += 1
        if piece := find_markup(text):
            found.append(piece)
    common = Counter(found).most_common(3)
    return MarkupCount(count, len(found), tuple(" ".join(piece.split()) for piece, _ in common))
