"""TensorFlow's checkpoint files ("tensor bundles", format V2), without TensorFlow.

    prefix.index                  a sorted table in LevelDB's format: "" -> header, name -> entry
    prefix.data-00000-of-00001    the values, little-endian, where the entries say

Each block of the index and each variable carries a masked CRC-32C. All are checked on reading, and
every length is compared with the real size of the file before anything is allocated for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy

from litebert.base.errors import FileError, FormatError, MissingExtraError

MAGIC = 0xDB4775248B80FB57
FOOTER = 48  # two block handles padded to 40 bytes, then the magic number
TRAILER = 5  # after each block: one byte for the compression, four for the checksum
BLOCK = 4096  # bytes of entries after which the writer starts a new block
LARGEST_INDEX = 256 * 2**20  # BERT-large with its optimizer needs 0.2 MiB
LONGEST_NAME = 4096
MOST_DIMENSIONS = 32

# TensorFlow's DataType numbers. bfloat16 is stored as the upper half of a float32.
DTYPES = {1: "float32", 2: "float64", 3: "int32", 9: "int64", 14: "bfloat16", 19: "float16"}
WIDTHS = {"float32": 4, "float64": 8, "int32": 4, "int64": 8, "bfloat16": 2, "float16": 2}

Message = dict[int, list[int | bytes]]


@dataclass(frozen=True)
class Entry:
    """Where one variable lies and what it is."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    shard: int
    shards: int
    offset: int
    size: int
    crc32c: int  # masked, as stored


def list_variables(prefix: Path) -> dict[str, Entry]:
    """Every variable of a checkpoint, by name, from its index; no values are read."""
    path = _index_path(prefix)
    if not path.is_file():
        raise _no_index(prefix, path)
    with _about(path):
        if path.stat().st_size > LARGEST_INDEX:
            raise FormatError(f"{path.stat().st_size:,} bytes is too large for a checkpoint index")
        pairs = _read_table(path.read_bytes())
        shards = _read_header(pairs.pop(b"", None))
        entries = [_read_entry(key, value, shards) for key, value in pairs.items()]
    return {entry.name: entry for entry in entries}


def read_variable(prefix: Path, entry: Entry) -> numpy.ndarray:
    """The values of one variable, checked; bfloat16 comes back as float32."""
    path = prefix.with_name(f"{prefix.name}.data-{entry.shard:05d}-of-{entry.shards:05d}")
    if not path.is_file():
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
        if _masked_crc32c(content) != entry.crc32c:
            raise _damaged(f"variable {entry.name!r} does not match its checksum")
        return _decode(content, entry)


def write_bundle(prefix: Path, tensors: dict[str, numpy.ndarray]) -> None:
    """Write variables as one checkpoint with a single data file, as TensorFlow itself would."""
    pairs = [(b"", _field(1, 1) + _field(3, _field(1, 1)))]  # one shard; written by version 1
    offset = 0
    with prefix.with_name(f"{prefix.name}.data-00000-of-00001").open("wb") as stream:
        # Python orders text by code point, which is also the order of its UTF-8 bytes.
        for name in sorted(tensors):
            content, entry = _encode(name, tensors[name], offset)
            stream.write(content)
            offset += len(content)
            pairs.append((name.encode(), entry))
    _index_path(prefix).write_bytes(_write_table(pairs))


# ---- errors


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Put the file's name before what went wrong inside it."""
    try:
        yield
    except FileError as error:
        raise type(error)(f"{path}: {error}") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error})") from None


def _damaged(what: str) -> FileError:
    return FileError(f"{what}; the file is damaged: copy it again")


def _no_index(prefix: Path, path: Path) -> FileError:
    if prefix.is_file():
        return FormatError(
            f"{prefix}: a single file without {path.name}, so at best a V1 checkpoint, which is "
            "not read; load it in TensorFlow 1 and save it with tf.train.Saver, which writes V2"
        )
    return FileError(f"{path}: no such file; name the checkpoint without its .index ending")


# ---- the header and the entries, which are protocol buffers


def _read_header(message: bytes | None) -> int:
    """The number of data files."""
    if message is None:
        raise FormatError("has no header, so it is not the index of a checkpoint")
    fields = _parse(message)
    if _number(fields, 2) != 0:
        raise FormatError("was written on a big-endian machine, which is not read")
    return _number(fields, 1)


def _read_entry(key: bytes, message: bytes, shards: int) -> Entry:
    if key.startswith(b"\0"):  # a slice: the name, then its place, in an encoding of their own
        raise _partitioned(key[1:].partition(b"\0")[0].decode(errors="replace"))
    try:
        name = key.decode()
    except UnicodeDecodeError:
        raise _damaged(f"the variable name {key!r} is not UTF-8") from None
    fields = _parse(message)
    if 7 in fields:
        raise _partitioned(name)
    entry = Entry(
        name=name,
        dtype=DTYPES.get(_number(fields, 1), f"TensorFlow data type {_number(fields, 1)}"),
        shape=_read_shape(fields),
        shard=_number(fields, 3),
        shards=shards,
        offset=_number(fields, 4),
        size=_number(fields, 5),
        crc32c=_number(fields, 6),
    )
    _check_entry(entry)
    return entry


def _read_shape(fields: Message) -> tuple[int, ...]:
    dimensions = [part for shape in _parts(fields, 2) for part in _parts(_parse(shape), 2)]
    return tuple(_number(_parse(dimension), 1) for dimension in dimensions)


def _check_entry(entry: Entry) -> None:
    if entry.shard >= entry.shards or len(entry.shape) > MOST_DIMENSIONS:
        raise _damaged(f"variable {entry.name!r} has an impossible place or shape")
    expected = math.prod(entry.shape) * WIDTHS.get(entry.dtype, 0)
    if entry.dtype in WIDTHS and entry.size != expected:
        raise _damaged(
            f"variable {entry.name!r} has {entry.size:,} bytes, its shape {entry.shape} of "
            f"{entry.dtype} needs {expected:,}"
        )


def _partitioned(name: str) -> FormatError:
    return FormatError(
        f"variable {name!r} is partitioned into slices, which are not read; "
        "save it again from TensorFlow without a partitioner"
    )


def _decode(content: bytes, entry: Entry) -> numpy.ndarray:
    if entry.dtype == "bfloat16":
        flat = (numpy.frombuffer(content, "<u2").astype("<u4") << 16).view("<f4")
    else:
        kind = numpy.dtype(entry.dtype)
        flat = numpy.frombuffer(content, kind.newbyteorder("<")).astype(kind)
    try:
        return flat.reshape(entry.shape)
    except ValueError:  # an empty variable whose other dimensions overflow
        raise _damaged(f"variable {entry.name!r} has the impossible shape {entry.shape}") from None


def _encode(name: str, array: numpy.ndarray, offset: int) -> tuple[bytes, bytes]:
    """The bytes of the data file and the entry of the index."""
    numbers = {name: number for number, name in DTYPES.items()}
    if not 0 < len(name.encode()) <= LONGEST_NAME or array.dtype.name not in numbers:
        raise FormatError(
            f"variable {name!r} of {array.dtype.name}: cannot be written to a TensorFlow "
            f"checkpoint; the data types are {', '.join(sorted(numbers))}"
        )
    content = array.astype(array.dtype.newbyteorder("<")).tobytes()
    shape = b"".join(_field(2, _field(1, size)) for size in array.shape)
    entry = _field(1, numbers[array.dtype.name]) + _field(2, shape) + _field(4, offset)
    checksum = _masked_crc32c(content).to_bytes(4, "little")
    return content, entry + _field(5, len(content)) + bytes([6 << 3 | 5]) + checksum


# ---- the table


def _read_table(table: bytes) -> dict[bytes, bytes]:
    if len(table) < FOOTER or int.from_bytes(table[-8:], "little") != MAGIC:
        raise FormatError("does not end like the index of a checkpoint; copy it again, all of it")
    handles = table[-FOOTER:-8]
    meta_offset, at = _varint(handles, 0)
    meta_size, at = _varint(handles, at)
    offset, at = _varint(handles, at)
    size, at = _varint(handles, at)
    if any(handles[at:]):
        raise _damaged("its last bytes are not as they were written")
    _block(table, meta_offset, meta_size)  # TensorFlow leaves it empty; only its checksum matters
    pairs: dict[bytes, bytes] = {}
    last = None
    for _, handle in _pairs(_block(table, offset, size)):
        block_offset, at = _varint(handle, 0)
        block_size, _ = _varint(handle, at)
        for key, value in _pairs(_block(table, block_offset, block_size)):
            if last is not None and key <= last:
                raise _damaged(f"its name {key!r} is out of order")
            pairs[key] = value
            last = key
    return pairs


def _block(table: bytes, offset: int, size: int) -> bytes:
    content, at = _take(table, offset, size + 1)
    checksum, _ = _take(table, at, TRAILER - 1)
    if _masked_crc32c(content) != int.from_bytes(checksum, "little"):
        raise _damaged(f"its block at byte {offset:,} does not match its checksum")
    if content[-1] != 0:
        raise FormatError(
            f"its block at byte {offset:,} is compressed (kind {content[-1]}, 1 is Snappy), which "
            "is not read; save the checkpoint again with tf.train.Saver, which does not compress"
        )
    return content[:-1]


def _pairs(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block. A key says how many bytes it shares with the key before it."""
    restarts = int.from_bytes(block[-4:], "little")
    entries, _ = _take(block, 0, len(block) - 4 * (restarts + 1))
    at, key = 0, b""
    while at < len(entries):
        shared, at = _varint(entries, at)
        fresh, at = _varint(entries, at)
        length, at = _varint(entries, at)
        if shared > len(key) or shared + fresh > LONGEST_NAME:
            raise _damaged("a variable name in it has an impossible length")
        suffix, at = _take(entries, at, fresh)
        value, at = _take(entries, at, length)
        key = key[:shared] + suffix
        yield key, value


def _write_table(pairs: list[tuple[bytes, bytes]]) -> bytes:
    table, handles, waiting = b"", [], []
    for position, (key, value) in enumerate(pairs):
        waiting.append((key, value))
        full = sum(len(key) + len(value) for key, value in waiting) >= BLOCK
        if full or position == len(pairs) - 1:
            table, handle = _add_block(table, waiting)
            handles.append((key, handle))
            waiting = []
    table, meta = _add_block(table, [])
    table, index = _add_block(table, handles)
    return table + (meta + index).ljust(FOOTER - 8, b"\0") + MAGIC.to_bytes(8, "little")


def _add_block(table: bytes, pairs: list[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Append a block whose keys are all in full; the longer table and the block's handle."""
    block, restarts = b"", []
    for key, value in pairs:
        restarts.append(len(block))
        block += b"\0" + _to_varint(len(key)) + _to_varint(len(value)) + key + value
    restarts = restarts or [0]
    for number in [*restarts, len(restarts)]:
        block += number.to_bytes(4, "little")
    handle = _to_varint(len(table)) + _to_varint(len(block))
    content = block + b"\0"  # not compressed
    return table + content + _masked_crc32c(content).to_bytes(4, "little"), handle


# ---- bytes


def _take(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if length < 0 or at + length > len(data):
        raise _damaged("it ends before it should")
    return data[at : at + length], at + length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        (byte,), at = _take(data, at, 1)
        value |= (byte & 0x7F) << shift
        if byte == 0 and shift:
            raise _damaged("a number in it is longer than it needs to be")
        if byte < 0x80:
            return value, at
    raise _damaged("a number in it is longer than ten bytes")


def _to_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _to_varint(number << 3) + _to_varint(value)
    return _to_varint(number << 3 | 2) + _to_varint(len(value)) + value


def _parse(message: bytes) -> Message:
    """The fields of a protocol buffer by number; the meaning is the caller's."""
    fields: Message = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(message, at)
        elif kind == 2:
            length, at = _varint(message, at)
            value, at = _take(message, at, length)
        elif kind in (1, 5):
            raw, at = _take(message, at, 8 if kind == 1 else 4)
            value = int.from_bytes(raw, "little")
        else:
            raise _damaged(f"a field in it has the unknown kind {kind}")
        fields.setdefault(number, []).append(value)
    return fields


def _number(fields: Message, number: int) -> int:
    value = fields.get(number, [0])[-1]
    if not isinstance(value, int) or value >= 2**63:  # the upper half are the negative numbers
        raise _damaged(f"its field {number} is not a count")
    return value


def _parts(fields: Message, number: int) -> list[bytes]:
    parts = [part for part in fields.get(number, []) if isinstance(part, bytes)]
    if len(parts) != len(fields.get(number, [])):
        raise _damaged(f"its field {number} is not a message")
    return parts


def _masked_crc32c(content: bytes) -> int:
    """CRC-32C, rotated and shifted: a checksum of data that holds checksums is a weak one."""
    try:
        import google_crc32c
    except ImportError:
        raise MissingExtraError("google-crc32c", "tf", "reading TensorFlow checkpoints") from None
    plain = google_crc32c.value(content)
    return ((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _index_path(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}.index")
