"""The two containers inside a TensorFlow checkpoint's index: LevelDB tables, protocol buffers.

A table is blocks of sorted key-value pairs, each block with a checksum, then an index block of the
blocks, then a footer. A protocol buffer is a row of numbered fields. Both are read defensively: a
length is checked before it is believed, and damage is an error, never a wrong value.
"""

from __future__ import annotations

from collections.abc import Iterator

from litebert.base.errors import FileError, FormatError, MissingExtraError

MAGIC = 0xDB4775248B80FB57
FOOTER = 48  # two block handles padded to 40 bytes, then the magic number
TRAILER = 5  # after each block: one byte for the compression, four for the checksum
BLOCK = 4096  # bytes of entries after which the writer starts a new block
LONGEST_KEY = 4096

Message = dict[int, list[int | bytes]]


def damaged(what: str) -> FileError:
    """An error that says what is wrong and what to do."""
    return FileError(f"{what}; the file is damaged: copy it again")


# ---- tables


def read_table(table: bytes) -> dict[bytes, bytes]:
    """Every pair of a table, checked."""
    if len(table) < FOOTER or int.from_bytes(table[-8:], "little") != MAGIC:
        raise FormatError("does not end like the index of a checkpoint; copy it again, all of it")
    handles = table[-FOOTER:-8]
    meta_offset, at = _varint(handles, 0)
    meta_size, at = _varint(handles, at)
    offset, at = _varint(handles, at)
    size, at = _varint(handles, at)
    if any(handles[at:]):
        raise damaged("its last bytes are not as they were written")
    _block(table, meta_offset, meta_size)  # TensorFlow leaves it empty; only its checksum matters
    pairs: dict[bytes, bytes] = {}
    last = None
    for _, handle in _pairs(_block(table, offset, size)):
        block_offset, at = _varint(handle, 0)
        block_size, _ = _varint(handle, at)
        for key, value in _pairs(_block(table, block_offset, block_size)):
            if last is not None and key <= last:
                raise damaged(f"its name {key!r} is out of order")
            pairs[key] = value
            last = key
    return pairs


def _block(table: bytes, offset: int, size: int) -> bytes:
    content, at = _take(table, offset, size + 1)
    checksum, _ = _take(table, at, TRAILER - 1)
    if masked_crc32c(content) != int.from_bytes(checksum, "little"):
        raise damaged(f"its block at byte {offset:,} does not match its checksum")
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
        if shared > len(key) or shared + fresh > LONGEST_KEY:
            raise damaged("a variable name in it has an impossible length")
        suffix, at = _take(entries, at, fresh)
        value, at = _take(entries, at, length)
        key = key[:shared] + suffix
        yield key, value


def write_table(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """A table of pairs that are already in order."""
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
    return table + content + masked_crc32c(content).to_bytes(4, "little"), handle


def _take(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if length < 0 or at + length > len(data):
        raise damaged("it ends before it should")
    return data[at : at + length], at + length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        (byte,), at = _take(data, at, 1)
        value |= (byte & 0x7F) << shift
        if byte == 0 and shift:
            raise damaged("a number in it is longer than it needs to be")
        if byte < 0x80:
            return value, at
    raise damaged("a number in it is longer than ten bytes")


def _to_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


# ---- protocol buffers


def field(number: int, value: int | bytes) -> bytes:
    """One field of a message, as bytes."""
    if isinstance(value, int):
        return _to_varint(number << 3) + _to_varint(value)
    return _to_varint(number << 3 | 2) + _to_varint(len(value)) + value


def parse_message(message: bytes) -> Message:
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
            raise damaged(f"a field in it has the unknown kind {kind}")
        fields.setdefault(number, []).append(value)
    return fields


def number_of(fields: Message, number: int) -> int:
    """A field that is a count; 0 where it is absent."""
    value = fields.get(number, [0])[-1]
    if not isinstance(value, int) or value >= 2**63:  # the upper half are the negative numbers
        raise damaged(f"its field {number} is not a count")
    return value


def parts_of(fields: Message, number: int) -> list[bytes]:
    """A field that is messages or bytes, as often as it occurs."""
    parts = [part for part in fields.get(number, []) if isinstance(part, bytes)]
    if len(parts) != len(fields.get(number, [])):
        raise damaged(f"its field {number} is not a message")
    return parts


def masked_crc32c(content: bytes) -> int:
    """CRC-32C, rotated and shifted: a checksum of data that holds checksums is a weak one."""
    try:
        import google_crc32c
    except ImportError:
        raise MissingExtraError("google-crc32c", "tf", "reading TensorFlow checkpoints") from None
    plain = google_crc32c.value(content)
    return ((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF
