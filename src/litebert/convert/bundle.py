"""TensorFlow's checkpoint files ("tensor bundles", format V2), without TensorFlow.

    prefix.index                  a sorted table in LevelDB's format: "" -> header, name -> entry
    prefix.data-00000-of-00001    the values, little-endian, where the entries say

Each block of the index and each variable carries a masked CRC-32C. All are checked on reading, and
every length is compared with the real size of the file before anything is allocated for it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy

from litebert.base.errors import FileError, FormatError
from litebert.base.protobuf import BadMessage, field, fixed32, read_fields
from litebert.convert.leveldb import LONGEST_KEY, masked_crc32c, read_table, write_table

LARGEST_INDEX = 256 * 2**20  # BERT-large with its optimizer needs 0.2 MiB
MAX_DIMENSIONS = 32

# TensorFlow's DataType numbers. bfloat16 is stored as the upper half of a float32.
DTYPES = {1: "float32", 2: "float64", 3: "int32", 9: "int64", 14: "bfloat16", 19: "float16"}
WIDTHS = {"float32": 4, "float64": 8, "int32": 4, "int64": 8, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class BundleEntry:
    """Where one variable lies and what it is."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    shard: int
    shards: int
    offset: int
    size: int
    crc32c: int  # masked, as stored


def list_variables(prefix: Path) -> dict[str, BundleEntry]:
    """Every variable of a checkpoint, by name, from its index; no values are read."""
    path = _index_path(prefix)
    if not os.path.isfile(path):
        raise _no_index(prefix, path)
    with _about(path):
        if path.stat().st_size > LARGEST_INDEX:
            raise FormatError(f"{path.stat().st_size:,} bytes is too large for a checkpoint index")
        pairs = read_table(path.read_bytes())
        shards = _read_header(pairs.pop(b"", None))
        entries = [_read_entry(key, value, shards) for key, value in pairs.items()]
    return {entry.name: entry for entry in entries}


def read_variable(prefix: Path, entry: BundleEntry) -> numpy.ndarray:
    """The values of one variable, checked; bfloat16 comes back as float32."""
    path = prefix.with_name(f"{prefix.name}.data-{entry.shard:05d}-of-{entry.shards:05d}")
    if not os.path.isfile(path):
        raise FileError(f"{path}: no such file, but the index names it; copy the checkpoint again")
    with _about(path):
        if entry.dtype not in WIDTHS:
            raise FormatError(f"variable {entry.name!r} is of {entry.dtype}, which is not read")
        if entry.offset + entry.size > path.stat().st_size:
            raise FileError(
                f"variable {entry.name!r} should end at byte {entry.offset + entry.size:,} of "
                f"{path.stat().st_size:,}; the file is truncated: copy it again"
            )
        with path.open("rb") as stream:
            stream.seek(entry.offset)
            content = stream.read(entry.size)
        if masked_crc32c(content) != entry.crc32c:
            raise BadMessage(f"variable {entry.name!r} does not match its checksum")
        return _decode(content, entry)


def write_bundle(prefix: Path, tensors: dict[str, numpy.ndarray]) -> None:
    """Write variables as one checkpoint with a single data file, as TensorFlow itself would."""
    pairs = [(b"", field(1, 1) + field(3, field(1, 1)))]  # one shard; written by version 1
    offset = 0
    with prefix.with_name(f"{prefix.name}.data-00000-of-00001").open("wb") as stream:
        # Python orders text by code point, which is also the order of its UTF-8 bytes.
        for name in sorted(tensors):
            content, entry = _encode(name, tensors[name], offset)
            stream.write(content)
            offset += len(content)
            pairs.append((name.encode(), entry))
    _index_path(prefix).write_bytes(write_table(pairs))


# ---- errors


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Put the file's name before what went wrong inside it."""
    try:
        yield
    except BadMessage as error:
        raise FileError(f"{path}: {error}; the file is damaged: copy it again") from None
    except FileError as error:
        raise type(error)(f"{path}: {error}") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error})") from None


def _no_index(prefix: Path, path: Path) -> FileError:
    if os.path.isfile(prefix):
        return FormatError(
            f"{prefix}: a single file without {path.name}, so at best a V1 checkpoint, which is "
            "not read; load it in TensorFlow 1 and save it with tf.train.Saver, which writes V2"
        )
    return FileError(f"{path}: no such file; name the checkpoint without its .index ending")


# ---- the header and the entries, which are protocol buffers


Message = dict[int, list[int | bytes]]  # the values of each field


def _parse(message: bytes) -> Message:
    fields: Message = {}
    for number, value in read_fields(message):
        fields.setdefault(number, []).append(value)
    return fields


def _count(fields: Message, number: int) -> int:
    """A field that is a count; 0 where it is absent."""
    value = fields.get(number, [0])[-1]
    if not isinstance(value, int) or value >= 2**63:  # the upper half are the negative numbers
        raise BadMessage(f"its field {number} is not a count")
    return value


def _messages(fields: Message, number: int) -> list[bytes]:
    """A field that is messages or bytes, as often as it occurs."""
    values = fields.get(number, [])
    parts = [value for value in values if isinstance(value, bytes)]
    if len(parts) != len(values):
        raise BadMessage(f"its field {number} is not a message")
    return parts


def _read_header(message: bytes | None) -> int:
    """The number of data files."""
    if message is None:
        raise FormatError("has no header, so it is not the index of a checkpoint")
    fields = _parse(message)
    if _count(fields, 2) != 0:
        raise FormatError("was written on a big-endian machine, which is not read")
    return _count(fields, 1)


def _read_entry(key: bytes, message: bytes, shards: int) -> BundleEntry:
    if key.startswith(b"\0"):  # a slice: the name, then its place, in an encoding of their own
        raise _partitioned(key[1:].partition(b"\0")[0].decode(errors="replace"))
    try:
        name = key.decode()
    except UnicodeDecodeError:
        raise BadMessage(f"the variable name {key!r} is not UTF-8") from None
    fields = _parse(message)
    if 7 in fields:
        raise _partitioned(name)
    entry = BundleEntry(
        name=name,
        dtype=DTYPES.get(_count(fields, 1), f"TensorFlow data type {_count(fields, 1)}"),
        shape=_read_shape(fields),
        shard=_count(fields, 3),
        shards=shards,
        offset=_count(fields, 4),
        size=_count(fields, 5),
        crc32c=int.from_bytes((_messages(fields, 6) or [b""])[-1], "little"),
    )
    _check_entry(entry)
    return entry


def _read_shape(fields: Message) -> tuple[int, ...]:
    dimensions = [part for shape in _messages(fields, 2) for part in _messages(_parse(shape), 2)]
    return tuple(_count(_parse(dimension), 1) for dimension in dimensions)


def _check_entry(entry: BundleEntry) -> None:
    if entry.shard >= entry.shards or len(entry.shape) > MAX_DIMENSIONS:
        raise BadMessage(f"variable {entry.name!r} has an impossible place or shape")
    expected = math.prod(entry.shape) * WIDTHS.get(entry.dtype, 0)
    if entry.dtype in WIDTHS and entry.size != expected:
        raise BadMessage(
            f"variable {entry.name!r} has {entry.size:,} bytes, its shape {entry.shape} of "
            f"{entry.dtype} needs {expected:,}"
        )


def _partitioned(name: str) -> FormatError:
    return FormatError(
        f"variable {name!r} is partitioned into slices, which are not read; "
        "save it again from TensorFlow without a partitioner"
    )


def _decode(content: bytes, entry: BundleEntry) -> numpy.ndarray:
    if entry.dtype == "bfloat16":
        flat = (numpy.frombuffer(content, "<u2").astype("<u4") << 16).view("<f4")
    else:
        kind = numpy.dtype(entry.dtype)
        flat = numpy.frombuffer(content, kind.newbyteorder("<")).astype(kind)
    try:
        return flat.reshape(entry.shape)
    except ValueError:  # an empty variable whose other dimensions overflow
        raise BadMessage(
            f"variable {entry.name!r} has the impossible shape {entry.shape}"
        ) from None


def _encode(name: str, array: numpy.ndarray, offset: int) -> tuple[bytes, bytes]:
    """The bytes of the data file and the entry of the index."""
    numbers = {name: number for number, name in DTYPES.items()}
    if not 0 < len(name.encode()) <= LONGEST_KEY or array.dtype.name not in numbers:
        raise FormatError(
            f"variable {name!r} of {array.dtype.name}: cannot be written to a TensorFlow "
            f"checkpoint; the data types are {', '.join(sorted(numbers))}"
        )
    content = array.astype(array.dtype.newbyteorder("<")).tobytes()
    shape = b"".join(field(2, field(1, size)) for size in array.shape)
    entry = field(1, numbers[array.dtype.name]) + field(2, shape) + field(4, offset)
    checksum = fixed32(6, masked_crc32c(content).to_bytes(4, "little"))
    return content, entry + field(5, len(content)) + checksum


def _index_path(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}.index")
