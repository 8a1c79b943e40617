"""SentencePiece unigram models.

Words of a sentence are cut independently of each other, but for one thing: the library adds scores
in single precision along the whole sentence, so that an exact tie (`kk` `k` or `k` `kk`) falls
either way depending on what stands before. An exact tie is the same pieces in another order that
spell the same word; a sentence with such a word is encoded whole.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import sentencepiece

from litebert.text.backend import (
    BadTokenizer,
    Offsets,
    TokenizerKind,
    replace_step,
    special_ids,
)
from litebert.text.sentencepiece_file import (
    PieceType,
    SentencePieceModel,
    charsmap_has_spaces,
    read_model,
)
from litebert.text.ties import Ties
from litebert.text.word_starts import SPACE

FILE = "spiece.model"
_NAMES = {
    "pad": ("<pad>", "[PAD]"),
    "unk": ("<unk>", "[UNK]"),
    "cls": ("[CLS]", "<cls>", "<s>"),
    "sep": ("[SEP]", "<sep>", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}


class SentencePieceBackend:
    """A unigram model as the sentencepiece library runs it."""

    kind: TokenizerKind = "sentencepiece"

    def __init__(self, data: bytes) -> None:
        """From the bytes of a model file; BadTokenizer if they are not one we can use."""
        self.model = read_model(data)
        self.files = {FILE: data}
        self.tokens = self.model.pieces
        self._processor = _load(data, len(self.tokens))
        unknown = self.tokens[self.model.types.index(PieceType.UNKNOWN)]
        self.special = special = special_ids(self.tokens, _NAMES | {"unk": (unknown,)})
        ordinary = (PieceType.NORMAL, PieceType.USER_DEFINED)
        self.special_mask = np.array([kind not in ordinary for kind in self.model.types])
        self.special_mask[[special.pad, special.cls, special.sep, special.mask]] = True
        self.splits_at_spaces = _splits_at_spaces(self.model)
        self._ties = Ties(self.tokens, self.special_mask)
        self._scores = viterbi_scores(self.model)

    def encode(self, texts: list[str]) -> list[list[int]]:
        """The ids of normalized texts."""
        return self._processor.encode(texts, num_threads=1)

    def encode_words(self, words: list[str], first: bool) -> list[Sequence[int] | None]:
        """The ids of normalized words; None for those that tie or hold a literal ▁."""
        del first
        encoded: list[Sequence[int] | None] = list(self.encode(words))
        for index in self._ties.words(encoded):
            encoded[index] = None
        if SPACE in "".join(words):
            encoded = [
                None if SPACE in word else ids for word, ids in zip(words, encoded, strict=True)
            ]
        return encoded

    def encode_offsets(self, text: str) -> tuple[list[int], Offsets]:
        """The ids of a normalized text and where each token stands in it."""
        mapping = self._processor.encode(text, return_type="offset_mapping")
        return mapping["ids"], mapping["offsets"]

    def decode(self, ids: list[int]) -> str:
        """The text of ids that are not special."""
        return self._processor.decode(ids)

    def pipeline(self) -> dict[str, Any]:
        """Unigram over words that begin with ▁."""
        spaces = {
            "type": "Metaspace",
            "replacement": SPACE,
            "prepend_scheme": "always" if self.model.add_dummy_prefix else "never",
            "split": self.splits_at_spaces,
        }
        return {
            "normalizers": _normalizers(self.model),
            "pre_tokenizer": spaces,
            "decoder": spaces,
            "model": {
                "type": "Unigram",
                "unk_id": self.special.unk,
                "vocab": [list(row) for row in zip(self.tokens, self._scores, strict=True)],
                "byte_fallback": False,
            },
        }


def _load(data: bytes, pieces: int) -> sentencepiece.SentencePieceProcessor:
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    except (RuntimeError, ValueError, OSError) as error:
        raise BadTokenizer(f"the sentencepiece library refuses it ({error})") from None
    if processor.get_piece_size() != pieces:
        raise BadTokenizer("the sentencepiece library counts other pieces than its file lists")
    return processor


def viterbi_scores(model: SentencePieceModel) -> list[float]:
    """The scores that count when a text is cut.

    The library gives a user-defined piece the best ordinary score for each of its bytes, less a
    tenth, instead of the stored one.
    """
    best = max(s for s, kind in zip(model.scores, model.types, strict=True) if kind == 1)
    return [
        len(piece.encode()) * best - 0.1 if kind is PieceType.USER_DEFINED else score
        for piece, score, kind in zip(model.pieces, model.scores, model.types, strict=True)
    ]


def _splits_at_spaces(model: SentencePieceModel) -> bool:
    """Whether a text's pieces are its words' pieces in a row."""
    usual = model.add_dummy_prefix and model.remove_extra_whitespaces and model.escape_whitespaces
    return (
        usual
        and not model.whitespace_as_suffix
        and SPACE in model.pieces  # else unknown characters fuse across a space
        and not any(SPACE in piece[1:] or " " in piece for piece in model.pieces)
        and not (model.charsmap and charsmap_has_spaces(model.charsmap))
    )


def _normalizers(model: SentencePieceModel) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    if model.charsmap:
        charsmap = base64.b64encode(model.charsmap).decode("ascii")
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if model.remove_extra_whitespaces:
        steps += [replace_step(" {2,}", " "), replace_step("^ | $", "")]
    return steps
