"""Protocol buffers on the wire: rows of numbered fields, of which the meaning is the caller's.

Read defensively: a length is checked before it is believed, and damage is an error, never a wrong
value. Fixed-width numbers come as their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
_WIDTHS = {FIXED64: 8, FIXED32: 4}


class BadMessage(ValueError):
    """Why bytes cannot be what they should be; the reader of the file puts its name before it."""


def read_bytes(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    """So many bytes from a place on, and the place after them."""
    if length < 0 or at + length > len(data):
        raise BadMessage("it ends in the middle")
    return data[at : at + length], at + length


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise BadMessage("it ends in the middle")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte == 0 and shift:
            raise BadMessage("a number in it is longer than it needs to be")
        if byte < 0x80:
            return value, at
    raise BadMessage("a number without an end: longer than ten bytes")


def read_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values of a message, in order."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise BadMessage("a field without a number")
        if wire == VARINT:
            value, at = read_varint(message, at)
        elif wire == BYTES:
            length, at = read_varint(message, at)
            value, at = read_bytes(message, at, length)
        elif wire in _WIDTHS:
            value, at = read_bytes(message, at, _WIDTHS[wire])
        else:
            raise BadMessage(f"a field of unknown kind (wire type {wire})")
        yield number, value


def varint(value: int) -> bytes:
    """A number in groups of seven bits."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes) -> bytes:
    """One field of a message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def fixed32(number: int, value: bytes) -> bytes:
    """A field of four bytes: a float, a checksum."""
    return varint(number << 3 | FIXED32) + value
