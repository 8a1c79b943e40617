"""Sentences: a text cut where one ends and the next begins.

Lines are paragraphs and end every sentence; within a line sentencex decides, by the rules of the
language. It knows about 300 languages and falls back to a related one or to English for others, so
any well-formed code is accepted and what is not a code at all is refused.
"""

from __future__ import annotations

import re
from functools import cache

from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue]

from litebert.base.errors import SettingsError

_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]{1,8})*")
# Without one of these (any script's full stop, ! or ?) a paragraph is one sentence.
_MAY_END = re.compile(r"[^\w\s,;:'\"()\-]")


def split_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of a text, trimmed; empty ones are dropped."""
    check_language(language)
    sentences: list[str] = []
    for paragraph in text.splitlines():
        if _MAY_END.search(paragraph) is None:
            sentences.append(paragraph.strip())
        else:
            sentences += [sentence.strip() for sentence in segment(language, paragraph)]
    return [sentence for sentence in sentences if sentence]


@cache
def check_language(language: str) -> None:
    """Refuse what is not a language code."""
    if _CODE.fullmatch(language) is None:
        raise SettingsError(
            f"language {language!r} is not a language code; "
            "write two or three small letters, such as en, ko, ja"
        )
