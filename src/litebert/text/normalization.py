"""Normalization: what happens to text before it is cut into tokens, by name.

One is chosen when a tokenizer is trained and stored with it, because ids mean nothing under
another one.

    english       ALBERT's: NFKD, combining characters dropped, lower case. It destroys Hangul
                  and Japanese voicing marks, so it is for English only.
    multilingual  NFKC; keeps case, accents, Hangul syllables and voicing marks.
    lower         multilingual in lower case; keeps accents.
    none          the text as it is.
    bert-uncased  what Google's BERT vocabularies expect: NFD, accents dropped, lower case.
    bert-cased    the same without lower case, accents kept.

All but `none` also turn every run of whitespace into one space and trim the ends. Google collapses
whitespace first and normalizes then; we do it last, so that a character that normalizes to a space
(U+00A8) leaves no double one. SentencePiece drops doubled spaces itself, so the ids are the same.
Lone surrogates, which no encoding can write, become U+FFFD under all of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial

from litebert.base.errors import SettingsError, did_you_mean

_SURROGATES = re.compile("[\ud800-\udfff]")
Aligned = tuple[str, list[int], list[int]]  # text, and where each character came from

_LAST_PLANE_WITH_MARKS = 0x20000  # ideographs beyond; nothing there combines


@dataclass(frozen=True)
class Normalization:
    """A normal form that can be taken cluster by cluster, then lower case, then whitespace."""

    form: Callable[[str], str]
    lowercase: bool
    collapse_spaces: bool
    folds_case: bool = False  # that of ASCII letters never matters, whatever stands around them


def normalize(text: str, normalization: str) -> str:
    """The text as the tokenizer's model sees it."""
    steps = find_normalization(normalization)
    text = steps.form(_without_surrogates(text))
    if steps.lowercase:
        text = text.lower()
    return " ".join(text.split()) if steps.collapse_spaces else text


def normalize_with_offsets(text: str, normalization: str) -> Aligned:
    """The normalized text and, for each of its characters, the original [start, end) it came from.

    Characters that may melt together (a letter and its accents, the jamo of a syllable) share
    one range.
    """
    steps = find_normalization(normalization)
    text = _without_surrogates(text)
    parts, starts, ends = [], [], []
    for start, end in clusters(text):
        part = steps.form(text[start:end])
        parts.append(part)
        starts += [start] * len(part)
        ends += [end] * len(part)
    aligned = "".join(parts), starts, ends
    if steps.lowercase:
        aligned = _lower_aligned(*aligned)
    return _collapse_aligned(*aligned) if steps.collapse_spaces else aligned


def normalize_words(words: list[str], normalization: str) -> list[str]:
    """Each word as `normalize` gives it; ASCII words all at once. No word may hold a space."""
    steps = find_normalization(normalization)
    if not steps.collapse_spaces:
        return [word if word.isascii() else normalize(word, normalization) for word in words]
    plain = [word for word in words if word.isascii()]
    text = steps.form(" ".join(plain))
    if steps.lowercase:
        text = text.lower()
    parts = text.split(" ")
    if len(parts) != len(plain) or parts != text.split():  # odd whitespace, or nothing left
        return [normalize(word, normalization) for word in words]
    plain_parts = iter(parts)
    return [
        next(plain_parts) if word.isascii() else normalize(word, normalization) for word in words
    ]


def find_normalization(name: str) -> Normalization:
    """A normalization by name."""
    if name not in NORMALIZATIONS:
        known = did_you_mean(name, NORMALIZATIONS)
        raise SettingsError(f"normalization {name!r} is not known; {known}")
    return NORMALIZATIONS[name]


def clusters(text: str) -> Iterator[tuple[int, int]]:
    """The ranges of a text that normalize independently of one another."""
    start = 0
    for position in range(1, len(text)):
        if not _joins(text[position]):
            yield start, position
            start = position
    if text:
        yield start, len(text)


@lru_cache(maxsize=1 << 16)
def _joins(character: str) -> bool:
    """Whether a character may combine with what stands before it."""
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.combining(first) != 0 or first in _composing_starters()


@cache
def _composing_starters() -> frozenset[str]:
    """Second halves of compositions that are not combining characters: jamo, some Indic vowels."""
    found = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for code in range(_LAST_PLANE_WITH_MARKS):
        halves = unicodedata.decomposition(chr(code)).split()
        if len(halves) == 2 and not halves[0].startswith("<"):
            second = chr(int(halves[1], 16))
            if unicodedata.combining(second) == 0:
                found.add(second)
    return frozenset(found)


@cache
def combining_class() -> str:
    """A regular expression's character class of all combining characters, as \\x{..} ranges."""
    codes = [
        code for code in range(_LAST_PLANE_WITH_MARKS) if unicodedata.combining(chr(code)) != 0
    ]
    return f"[{character_ranges(codes)}]"


def character_ranges(codes: list[int]) -> str:
    """Sorted code points as ranges in Oniguruma's notation."""
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(
        f"\\x{{{first:X}}}" if first == last else f"\\x{{{first:X}}}-\\x{{{last:X}}}"
        for first, last in ranges
    )


def _nfkd_without_combining(text: str) -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKD", text)
    return "".join([character for character in text if not unicodedata.combining(character)])


def _bert_uncased(text: str) -> str:
    return _bert_normalizer(True).normalize_str(text)


def _bert_cased(text: str) -> str:
    return _bert_normalizer(False).normalize_str(text)


@cache
def _bert_normalizer(lower: bool):
    """BERT's normalization by the library whose ids we promise, so that its tables decide."""
    from tokenizers.normalizers import BertNormalizer

    return BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=lower, lowercase=lower
    )


def _without_surrogates(text: str) -> str:
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _lower_aligned(text: str, starts: list[int], ends: list[int]) -> Aligned:
    """Lower case of the whole (a final sigma depends on its neighbours), widths one by one."""
    widths = [len(character.lower()) for character in text]
    if any(width != 1 for width in widths):
        starts = [start for start, width in zip(starts, widths, strict=True) for _ in range(width)]
        ends = [end for end, width in zip(ends, widths, strict=True) for _ in range(width)]
    return text.lower(), starts, ends


def _collapse_aligned(text: str, starts: list[int], ends: list[int]) -> Aligned:
    kept, kept_starts, kept_ends = [], [], []
    for character, start, end in zip(text, starts, ends, strict=True):
        if not character.isspace():
            kept.append(character)
            kept_starts.append(start)
            kept_ends.append(end)
        elif kept and kept[-1] == " ":
            kept_ends[-1] = end
        elif kept:
            kept.append(" ")
            kept_starts.append(start)
            kept_ends.append(end)
    if kept and kept[-1] == " ":
        del kept[-1], kept_starts[-1], kept_ends[-1]
    return "".join(kept), kept_starts, kept_ends


_nfkc = partial(unicodedata.normalize, "NFKC")
NORMALIZATIONS = {
    "english": Normalization(_nfkd_without_combining, True, True, folds_case=True),
    "multilingual": Normalization(_nfkc, lowercase=False, collapse_spaces=True),
    "lower": Normalization(_nfkc, lowercase=True, collapse_spaces=True),
    "none": Normalization(str, lowercase=False, collapse_spaces=False),
    "bert-uncased": Normalization(_bert_uncased, False, True, folds_case=True),
    "bert-cased": Normalization(_bert_cased, lowercase=False, collapse_spaces=True),
}
