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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

LARGEST_MODEL = 64 * 2**20
MOST_PIECES = 1_000_000
LONGEST_PIECE = 4096  # bytes
_UNIGRAM = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
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


class BadModel(ValueError):
    """Why a model file is refused; the reader of the path puts the path before it."""


def read_model(data: bytes) -> SentencePieceModel:
    """A checked model from a file's bytes, or BadModel."""
    pieces: list[tuple[str, float, PieceType]] = []
    sections: dict[int, bytes] = {}
    for number, value in _fields(data):
        if number == 1:
            pieces.append(_piece(_expect_bytes(value), len(pieces)))
        elif number in (2, 3):
            if number in sections:
                raise BadModel("it holds its settings twice")
            sections[number] = _expect_bytes(value)
    _check_pieces(pieces)
    trainer = _last(sections.get(2, b""))
    normalizer = _last(sections.get(3, b""))
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


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values of a message; fixed-width values as their bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise BadModel("it is not a SentencePiece model (a field without a number)")
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == _BYTES:
            size, position = _varint(data, position)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise BadModel(f"it is not a SentencePiece model (unknown wire type {wire})")
        if position + size > len(data):
            raise BadModel("it ends in the middle; copy the file again")
        yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise BadModel("it ends in the middle; copy the file again")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise BadModel("it is not a SentencePiece model (a number without an end)")


def _last(message: bytes) -> dict[int, int | bytes]:
    return dict(_fields(message))


def _expect_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise BadModel("it is not a SentencePiece model (a number where text belongs)")
    return value


def _piece(message: bytes, index: int) -> tuple[str, float, PieceType]:
    fields = _last(message)
    raw, score, kind = fields.get(1, b""), fields.get(2, bytes(4)), fields.get(3, 1)
    if not isinstance(raw, bytes) or not isinstance(score, bytes) or len(score) != 4:
        raise BadModel(f"piece {index} is malformed")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadModel(f"piece {index} is not UTF-8") from None
    if not 0 < len(raw) <= LONGEST_PIECE:
        raise BadModel(f"piece {index} is {len(raw)} bytes long")
    value = struct.unpack("<f", score)[0]
    if not math.isfinite(value):
        raise BadModel(f"piece {index} has the score {value}")
    if kind not in PieceType.__members__.values():
        raise BadModel(f"piece {index} has the unknown type {kind!r}")
    return text, value, PieceType(kind)


def _check_pieces(pieces: Sequence[tuple[str, float, PieceType]]) -> None:
    if not pieces:
        raise BadModel("it has no pieces, so it is no SentencePiece model")
    if len(pieces) > MOST_PIECES:
        raise BadModel(f"it has {len(pieces):,} pieces, more than {MOST_PIECES:,}")
    if len({piece for piece, _, _ in pieces}) != len(pieces):
        raise BadModel("it has the same piece twice")
    kinds = [kind for _, _, kind in pieces]
    if kinds.count(PieceType.UNKNOWN) != 1:
        raise BadModel(f"it has {kinds.count(PieceType.UNKNOWN)} unknown pieces, expected one")
    if PieceType.NORMAL not in kinds:
        raise BadModel("it has no ordinary piece")
    if PieceType.BYTE in kinds:
        raise BadModel("it falls back to bytes, which litebert does not support")


def _check_kind(trainer: dict[int, int | bytes]) -> None:
    kind = trainer.get(3, _UNIGRAM)
    if kind != _UNIGRAM:
        names = {2: "BPE", 3: "word", 4: "character"}
        name = names.get(kind, repr(kind)) if isinstance(kind, int) else repr(kind)
        raise BadModel(f"it is a {name} model; litebert reads unigram models")


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
        raise BadModel("its normalization table points outside itself; copy the file again")
    has_leaf = ((units[inner] >> np.uint32(8)) & np.uint32(1)).astype(bool)
    leaves = units[children[has_leaf]]
    if np.any((leaves & ~_LEAF) >= len(texts)):
        raise BadModel("its normalization table names texts it does not have; copy the file again")


def split_charsmap(charsmap: bytes) -> tuple[np.ndarray, bytes]:
    """The units of the trie, and the zero-terminated texts its leaves point to."""
    if len(charsmap) < 8:
        raise BadModel("its normalization table is too short")
    size = int.from_bytes(charsmap[:4], "little")
    texts = charsmap[4 + size :]
    if size % 4 or 4 + size >= len(charsmap) or not texts.endswith(b"\0"):
        raise BadModel("its normalization table is damaged; copy the file again")
    return np.frombuffer(charsmap, "<u4", size // 4, 4), texts


def _distance(units: np.ndarray) -> np.ndarray:
    return (units >> np.uint32(10)) << ((units & np.uint32(1 << 9)) >> np.uint32(6))


def charsmap_has_spaces(charsmap: bytes) -> bool:
    """Whether a normalization rule looks across a space, so words cannot be taken one by one."""
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
        _block(1, _block(1, text.encode()) + b"\x15" + struct.pack("<f", score) + _number(3, kind))
        for text, score, kind in pieces
    ]
    unknown = next(i for i, (_, _, kind) in enumerate(pieces) if kind is PieceType.UNKNOWN)
    trainer = _number(3, _UNIGRAM) + _number(4, len(pieces)) + _number(40, unknown)
    normalizer = _block(1, name.encode()) + (_block(2, charsmap) if charsmap else b"")
    return b"".join([*body, _block(2, trainer), _block(3, normalizer)])


def _block(number: int, content: bytes) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _encoded(number << 3 | _VARINT) + _encoded(value)


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
