"""SentencePiece model files: read and checked by us, before the library sees them.

The file is a protocol buffer: pieces with scores and types, how it was trained, how text is
normalized. We read the few fields we need and refuse what is damaged or out of bounds, because
the library walks a stored trie (the "charsmap") with offsets that the file dictates.

The same reader's inverse, `write_model`, makes a model file out of pieces that came from a
tokenizer.json.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from litebert.base.protobuf import BadMessage, field, fixed32, read_fields
from litebert.text.backend import BadTokenizer

LARGEST_MODEL = 64 * 2**20
MOST_PIECES = 1_000_000
LONGEST_PIECE = 4096  # bytes
_UNIGRAM = 1
_LEAF = np.uint32(1 << 31)


class PieceType(IntEnum):
    """What a piece is for; the file's own numbers."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class SentencePieceModel:
    """What a model file says."""

    pieces: list[str]
    scores: list[float]
    types: list[PieceType]
    charsmap: bytes
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    whitespace_as_suffix: bool = False


def read_model(data: bytes) -> SentencePieceModel:
    """A checked model from a file's bytes, or BadTokenizer."""
    try:
        return _read(data)
    except BadMessage as error:
        raise BadTokenizer(
            f"it is not a whole SentencePiece model ({error}); copy the file again"
        ) from None


def _read(data: bytes) -> SentencePieceModel:
    pieces: list[tuple[str, float, PieceType]] = []
    sections: dict[int, bytes] = {}
    for number, value in read_fields(data):
        if number == 1:
            pieces.append(_piece(_expect_bytes(value), len(pieces)))
        elif number in (2, 3):
            if number in sections:
                raise BadTokenizer("it holds its settings twice")
            sections[number] = _expect_bytes(value)
    _check_pieces(pieces)
    trainer = dict(read_fields(sections.get(2, b"")))
    normalizer = dict(read_fields(sections.get(3, b"")))
    _check_kind(trainer)
    charsmap = _expect_bytes(normalizer.get(2, b""))
    if charsmap:
        check_charsmap(charsmap)
    return SentencePieceModel(
        pieces=[piece for piece, _, _ in pieces],
        scores=[score for _, score, _ in pieces],
        types=[kind for _, _, kind in pieces],
        charsmap=charsmap,
        add_dummy_prefix=bool(normalizer.get(3, 1)),
        remove_extra_whitespaces=bool(normalizer.get(4, 1)),
        escape_whitespaces=bool(normalizer.get(5, 1)),
        whitespace_as_suffix=bool(trainer.get(24, 0)),
    )


def _expect_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise BadTokenizer("it is not a SentencePiece model (a number where text belongs)")
    return value


def _piece(message: bytes, index: int) -> tuple[str, float, PieceType]:
    fields = dict(read_fields(message))
    raw, score, kind = fields.get(1, b""), fields.get(2, bytes(4)), fields.get(3, 1)
    if not isinstance(raw, bytes) or not isinstance(score, bytes) or len(score) != 4:
        raise BadTokenizer(f"piece {index} is malformed")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadTokenizer(f"piece {index} is not UTF-8") from None
    if not 0 < len(raw) <= LONGEST_PIECE:
        raise BadTokenizer(f"piece {index} is {len(raw)} bytes long")
    value = struct.unpack("<f", score)[0]
    if not math.isfinite(value):
        raise BadTokenizer(f"piece {index} has the score {value}")
    if kind not in PieceType.__members__.values():
        raise BadTokenizer(f"piece {index} has the unknown type {kind!r}")
    return text, value, PieceType(kind)


def _check_pieces(pieces: Sequence[tuple[str, float, PieceType]]) -> None:
    if not pieces:
        raise BadTokenizer("it has no pieces, so it is no SentencePiece model")
    if len(pieces) > MOST_PIECES:
        raise BadTokenizer(f"it has {len(pieces):,} pieces, more than {MOST_PIECES:,}")
    if len({piece for piece, _, _ in pieces}) != len(pieces):
        raise BadTokenizer("it has the same piece twice")
    kinds = [kind for _, _, kind in pieces]
    if kinds.count(PieceType.UNKNOWN) != 1:
        raise BadTokenizer(f"it has {kinds.count(PieceType.UNKNOWN)} unknown pieces, expected one")
    if PieceType.NORMAL not in kinds:
        raise BadTokenizer("it has no ordinary piece")
    if PieceType.BYTE in kinds:
        raise BadTokenizer("it falls back to bytes, which litebert does not support")


def _check_kind(trainer: dict[int, int | bytes]) -> None:
    kind = trainer.get(3, _UNIGRAM)
    if kind != _UNIGRAM:
        names = {2: "BPE", 3: "word", 4: "character"}
        name = names.get(kind, repr(kind)) if isinstance(kind, int) else repr(kind)
        raise BadTokenizer(f"it is a {name} model; litebert reads unigram models")


def check_charsmap(charsmap: bytes) -> None:
    """Every step through the stored trie must stay inside it, and every leaf inside the texts.

    A unit of the double array holds a label (8 bits), a leaf flag and the distance to its
    children; unit i's children are at (i ^ distance) ^ byte.
    """
    units, texts = split_charsmap(charsmap)
    position = np.arange(units.size, dtype=np.uint32)
    inner = (units & _LEAF) == 0
    children = position[inner] ^ _distance(units[inner])
    if units.size == 0 or np.any((children | np.uint32(0xFF)) >= units.size):
        raise BadTokenizer("its normalization table points outside itself; copy the file again")
    has_leaf = ((units[inner] >> np.uint32(8)) & np.uint32(1)).astype(bool)
    leaves = units[children[has_leaf]]
    if np.any((leaves & ~_LEAF) >= len(texts)):
        raise BadTokenizer(
            "its normalization table names texts it does not have; copy the file again"
        )


def split_charsmap(charsmap: bytes) -> tuple[np.ndarray, bytes]:
    """The units of the trie, and the zero-terminated texts its leaves point to."""
    if len(charsmap) < 8:
        raise BadTokenizer("its normalization table is too short")
    size = int.from_bytes(charsmap[:4], "little")
    texts = charsmap[4 + size :]
    if size % 4 or 4 + size >= len(charsmap) or not texts.endswith(b"\0"):
        raise BadTokenizer("its normalization table is damaged; copy the file again")
    return np.frombuffer(charsmap, "<u4", size // 4, 4), texts


def _distance(units: np.ndarray) -> np.ndarray:
    return (units >> np.uint32(10)) << ((units & np.uint32(1 << 9)) >> np.uint32(6))


def charsmap_has_spaces(charsmap: bytes) -> bool:
    """Whether a normalization rule reaches across a space, so words cannot be taken one by one."""
    units, _ = split_charsmap(charsmap)
    labels = np.arange(1, 256, dtype=np.uint32)
    seen = np.zeros(units.size, bool)
    frontier = _distance(units[:1])  # where the children of each node begin; branches may meet
    while frontier.size:
        seen[frontier] = True
        places = frontier[:, None] ^ labels
        found = (units[places] & (_LEAF | np.uint32(0xFF))) == labels
        if found[:, 0x20 - 1].any():
            return True
        reached = places[found]
        frontier = np.unique(reached ^ _distance(units[reached]))
        frontier = frontier[~seen[frontier]]
    return False


def write_model(
    pieces: Sequence[tuple[str, float, PieceType]], charsmap: bytes = b"", *, name: str = "identity"
) -> bytes:
    """A unigram model file of these pieces, with SentencePiece's usual whitespace settings."""
    body = [
        field(1, field(1, text.encode()) + fixed32(2, struct.pack("<f", score)) + field(3, kind))
        for text, score, kind in pieces
    ]
    unknown = next(i for i, (_, _, kind) in enumerate(pieces) if kind is PieceType.UNKNOWN)
    trainer = field(3, _UNIGRAM) + field(4, len(pieces)) + field(40, unknown)
    normalizer = field(1, name.encode()) + (field(2, charsmap) if charsmap else b"")
    return b"".join([*body, field(2, trainer), field(3, normalizer)])
