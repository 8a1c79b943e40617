"""LevelDB's tables, which a TensorFlow checkpoint's index is.

A table is blocks of sorted key-value pairs, each block with a checksum, then an index block of the
blocks, then a footer. It is read defensively: a length is checked before it is believed, and damage
is an error, never a wrong value.
"""

from __future__ import annotations

from collections.abc import Iterator

from litebert.base.errors import FormatError, MissingExtraError
from litebert.base.protobuf import BadMessage, read_bytes, read_varint, varint

MAGIC = 0xDB4775248B80FB57
FOOTER = 48  # two block handles padded to 40 bytes, then the magic number
TRAILER = 5  # after each block: one byte for the compression, four for the checksum
BLOCK = 4096  # bytes of entries after which the writer starts a new block
LONGEST_KEY = 4096


def read_table(table: bytes) -> dict[bytes, bytes]:
    """Every pair of a table, checked."""
    if len(table) < FOOTER or int.from_bytes(table[-8:], "little") != MAGIC:
        raise FormatError("does not end like the index of a checkpoint; copy it again, all of it")
    handles = table[-FOOTER:-8]
    meta_offset, at = read_varint(handles, 0)
    meta_size, at = read_varint(handles, at)
    offset, at = read_varint(handles, at)
    size, at = read_varint(handles, at)
    if any(handles[at:]):
        raise BadMessage("its last bytes are not as they were written")
    _block(table, meta_offset, meta_size)  # TensorFlow leaves it empty; only its checksum matters
    pairs: dict[bytes, bytes] = {}
    last = None
    for _, handle in _pairs(_block(table, offset, size)):
        block_offset, at = read_varint(handle, 0)
        block_size, _ = read_varint(handle, at)
        for key, value in _pairs(_block(table, block_offset, block_size)):
            if last is not None and key <= last:
                raise BadMessage(f"its name {key!r} is out of order")
            pairs[key] = value
            last = key
    return pairs


def _block(table: bytes, offset: int, size: int) -> bytes:
    content, at = read_bytes(table, offset, size + 1)
    checksum, _ = read_bytes(table, at, TRAILER - 1)
    if masked_crc32c(content) != int.from_bytes(checksum, "little"):
        raise BadMessage(f"its block at byte {offset:,} does not match its checksum")
    if content[-1] != 0:
        raise FormatError(
            f"its block at byte {offset:,} is compressed (kind {content[-1]}, 1 is Snappy), which "
            "is not read; save the checkpoint again with tf.train.Saver, which does not compress"
        )
    return content[:-1]


def _pairs(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block. A key says how many bytes it shares with the key before it."""
    restarts = int.from_bytes(block[-4:], "little")
    entries, _ = read_bytes(block, 0, len(block) - 4 * (restarts + 1))
    at, key = 0, b""
    while at < len(entries):
        shared, at = read_varint(entries, at)
        fresh, at = read_varint(entries, at)
        length, at = read_varint(entries, at)
        if shared > len(key) or shared + fresh > LONGEST_KEY:
            raise BadMessage("a variable name in it has an impossible length")
        suffix, at = read_bytes(entries, at, fresh)
        value, at = read_bytes(entries, at, length)
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
        block += b"\0" + varint(len(key)) + varint(len(value)) + key + value
    restarts = restarts or [0]
    for number in [*restarts, len(restarts)]:
        block += number.to_bytes(4, "little")
    handle = varint(len(table)) + varint(len(block))
    content = block + b"\0"  # not compressed
    return table + content + masked_crc32c(content).to_bytes(4, "little"), handle


def masked_crc32c(content: bytes) -> int:
    """CRC-32C, rotated and shifted: a checksum of data that holds checksums is a weak one."""
    try:
        import google_crc32c
    except ImportError:
        raise MissingExtraError("google-crc32c", "tf", "reading TensorFlow checkpoints") from None
    plain = google_crc32c.value(content)
    return ((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF
