"""SentencePiece unigram models.

Words of a sentence are cut independently of each other, but for one thing: the library adds scores
in single precision along the whole sentence, so that an exact tie (`kk` `k` or `k` `kk`) falls
either way depending on what stands before. An exact tie is the same pieces in another order that
spell the same word; a sentence with such a word is encoded whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sentencepiece
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Engine

from litebert.text.backend import (
    BadTokenizer,
    Offsets,
    TokenizerKind,
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

    def encode(self, texts: list[str]) -> list[list[int]]:
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
        mapping = self._processor.encode(text, return_type="offset_mapping")
        return mapping["ids"], mapping["offsets"]

    def decode(self, ids: list[int]) -> str:
        return self._processor.decode(ids)

    def engine(self) -> tuple[Engine, list[Any]]:
        rows = list(zip(self.tokens, viterbi_scores(self.model), strict=True))
        scheme = "always" if self.model.add_dummy_prefix else "never"
        engine = Engine(models.Unigram(rows, self.special.unk))
        engine.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, scheme, self.splits_at_spaces)
        engine.decoder = decoders.Metaspace(SPACE, scheme, self.splits_at_spaces)
        return engine, _normalizers(self.model)


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


def _normalizers(model: SentencePieceModel) -> list[Any]:
    steps: list[Any] = [normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    if model.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace(Regex("^ | $"), "")]
    return steps
