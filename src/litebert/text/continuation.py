"""WordPiece's continuations as characters of their own, so that training is deterministic.

The library's WordPiece trainer numbers tokens such as `##a` in the order of a hash table, which
changes from run to run, and ties between merges follow the numbers. We mark every character that
does not begin its word by moving it to the private use planes, train plain BPE, whose numbering is
sorted, and turn the marks into ## afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import normalizers, pre_tokenizers

_FIRST_MARK = 0xF0000
_LAST_MARK = 0x10FFFD


class ContinuationAlphabet:
    """Characters of a text <-> their marked forms."""

    def __init__(self, sentences: Iterable[str]) -> None:
        characters = sorted(set().union(*map(set, sentences)) - set(map(chr, _marks())))
        self._marks = {ord(c): mark for c, mark in zip(characters, _marks(), strict=False)}
        self._characters = {mark: code for code, mark in self._marks.items()}
        self._normalizer = normalizers.BertNormalizer(strip_accents=False, lowercase=False)
        self._splitter = pre_tokenizers.BertPreTokenizer()

    def mark(self, sentence: str) -> str:
        """BERT's words of a sentence, all but the first character of each marked."""
        text = self._normalizer.normalize_str(sentence)
        words = [word for word, _ in self._splitter.pre_tokenize_str(text)]
        return " ".join(word[0] + word[1:].translate(self._marks) for word in words)

    def unmark(self, token: str) -> str:
        """A trained token as WordPiece writes it."""
        prefix = "##" if ord(token[0]) in self._characters else ""
        return prefix + token.translate(self._characters)


def _marks() -> range:
    return range(_FIRST_MARK, _LAST_MARK)
