"""What a hostile or unlucky hand does to a file: pure functions of bytes and a source of chance.

A mutation knows the file's format well enough to get past its parser: a value replaced inside the
JSON, a header that still fits its length. Every third one is of bare bytes.
"""

from __future__ import annotations

import copy
import gzip
import json
import lzma
import math
import random
import re
from collections.abc import Callable
from typing import Any

import zstandard

Mutation = Callable[[bytes, random.Random], bytes]

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 255, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0,
    1e-320, 1e308, math.nan, math.inf, -math.inf, "", " ", "x", "0", "-1", "--5", "nan", "../..",
    "/dev/zero", "/etc/passwd", "a\0b", "a\nb", "\x1b[31m", "é", "\ud800", "x" * 300, "y" * 100_000,
    "9" * 5000, [], {}, [[]], [None], {"": None}, ["x"] * 1000, list(range(5000)),
    {"a": {"b": {"c": 1}}},
)  # fmt: skip
TOML_VALUES = (
    "", "=", "0", "-1", "1e400", "nan", "inf", "99999999999999999999", "true", "''", "'x'", "[]",
    "{}", "[[]]", "'" + "x" * 20_000 + "'", "[" * 300 + "]" * 300, "9" * 6000, "'../x'",
    "1979-05-27", '"\\ud800"', "{a={b={c=1}}}",
)  # fmt: skip
CELLS = (
    b"", b'"', b'""', b"\t", b",", b"\r", b"\n", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"-" * 3,
    b"9" * 5000, b"x" * 50_000, b"nan", b"inf", b"1e999", "é\u2028".encode(), b"[]", b"{}", b"null",
)  # fmt: skip
FLOATS = (b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", b"\x00\x00\x80\xff", b"\xff\xff\x7f\x7f")


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """Flip, cut, repeat, insert or overwrite something somewhere."""
    place = chance.randrange(len(data) + 1)
    size = chance.choice((1, 2, 4, 8, 64, 1000))
    noise = chance.choice((chance.randbytes(size), bytes(size), b"\xff" * size, *CELLS))
    match chance.randrange(6):
        case 0 if place < len(data):
            return (
                data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
            )
        case 1:
            return data[:place]
        case 2:
            return data[:place] + data[place + size :]
        case 3:
            return data[:place] + noise + data[place:]
        case 4:
            return data[:place] + noise + data[place + len(noise) :]
        case _:
            return data[:place] + data[max(place - size, 0) : place] * 2 + data[place:]


def mutate_text(data: bytes, chance: random.Random) -> bytes:
    """The same by lines: lose, repeat, swap or change one; or a cell of a table."""
    if chance.random() < 0.3:
        return mutate_bytes(data, chance)
    lines = data.split(b"\n")
    i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[i]
        case 1:
            lines.insert(j, lines[i])
        case 2:
            lines[i], lines[j] = lines[j], lines[i]
        case _:
            cells = re.split(rb"([,\t ])", lines[i])
            cells[chance.randrange(len(cells))] = chance.choice(CELLS)
            lines[i] = b"".join(cells)
    return b"\n".join(lines)


def mutate_toml(data: bytes, chance: random.Random) -> bytes:
    """A value replaced by another, or what is done to any text."""
    if chance.random() < 0.4:
        return mutate_text(data, chance)
    lines = data.decode().split("\n")
    keyed = [number for number, line in enumerate(lines) if "=" in line]
    number = chance.choice(keyed)
    lines[number] = lines[number].partition("=")[0] + "= " + chance.choice(TOML_VALUES)
    return "\n".join(lines).encode()


def mutate_json(data: bytes, chance: random.Random) -> bytes:
    """Some values of the JSON replaced, lost, renamed or moved; now and then bare bytes."""
    if chance.random() < 0.2:
        return mutate_bytes(data, chance)
    content = json.loads(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        content = mutate_value(content, chance)
    indent = 2 if chance.random() < 0.5 else None
    return json.dumps(content, indent=indent, ensure_ascii=chance.random() < 0.5).encode(
        errors="surrogatepass"
    )


def mutate_value(content: Any, chance: random.Random) -> Any:
    """A tree of values with one of them changed."""
    content = copy.deepcopy(content)
    places = list(_places(content)) if isinstance(content, dict | list) else []
    if not places or chance.random() < 0.02:
        return chance.choice(VALUES)
    box, key = chance.choice(places)
    match chance.randrange(6):
        case 0:
            del box[key]
        case 1 if isinstance(box, dict):
            box[chance.choice((*box, "", "x" * 2000, "__proto__"))] = box.pop(key)
        case 2:
            other, there = chance.choice(places)
            box[key] = copy.deepcopy(other[there])
        case 3 if isinstance(box[key], int | float):
            box[key] = chance.choice((-box[key], box[key] + 1, box[key] * 1000, str(box[key])))
        case _:
            box[key] = copy.deepcopy(chance.choice(VALUES))
    return content


def _places(content: Any) -> Any:
    """Every box of a tree with every key of it; of long lists the first few."""
    keys = list(content) if isinstance(content, dict) else range(min(len(content), 8))
    for key in keys:
        yield content, key
        if isinstance(content[key], dict | list):
            yield from _places(content[key])


def mutate_json_lines(data: bytes, chance: random.Random) -> bytes:
    """One line of JSON lines."""
    if chance.random() < 0.3:
        return mutate_text(data, chance)
    lines = data.split(b"\n")
    number = chance.randrange(len(lines) - 1)
    lines[number] = mutate_json(lines[number], chance)
    return b"\n".join(lines)


def mutate_safetensors(data: bytes, chance: random.Random) -> bytes:
    """The header with its length, the length alone, or numbers that are none."""
    size = int.from_bytes(data[:8], "little")
    header, body = data[8 : 8 + size], data[8 + size :]
    match chance.randrange(5):
        case 0 | 1:
            changed = mutate_json(header, chance)
            return len(changed).to_bytes(8, "little") + changed + body
        case 2:
            wrong = chance.choice((0, 1, size - 1, size + 1, len(data), 2**31, 2**63, 2**64 - 1))
            return wrong.to_bytes(8, "little") + data[8:]
        case 3 if len(body) >= 4:
            place = chance.randrange(len(body) // 4) * 4
            return data[: 8 + size] + body[:place] + chance.choice(FLOATS) + body[place + 4 :]
        case _:
            return mutate_bytes(data, chance)


def mutate_gzip(data: bytes, chance: random.Random) -> bytes:
    """A mutant inside sound compression, damaged compression, or a bomb."""
    match chance.randrange(4):
        case 0:
            return mutate_bytes(data, chance)
        case 1:
            return gzip.compress(_bomb(chance), 1, mtime=0)
        case _:
            return gzip.compress(mutate_text(gzip.decompress(data), chance), 1, mtime=0)


def mutate_xz(data: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.5:
        return mutate_bytes(data, chance)
    return lzma.compress(mutate_text(lzma.decompress(data), chance), preset=0)


def mutate_zstd(data: bytes, chance: random.Random) -> bytes:
    match chance.randrange(4):
        case 0:
            return mutate_bytes(data, chance)
        case 1:
            return zstandard.compress(_bomb(chance), 1)
        case _:
            return zstandard.compress(mutate_text(zstandard.decompress(data), chance), 1)


def _bomb(chance: random.Random) -> bytes:
    """Many tiny rows, or one that does not end."""
    row = chance.choice(
        (b"a,b\n", b"\n", b"{}\n", b'{"text":"a","label":"b"}\n', b"a", b'"', b"[{")
    )
    return b"text,label\n" + row * chance.choice((10_000, 1_000_000, 4_000_000))


BY_NAME: dict[str, Mutation] = {
    ".json": mutate_json,
    ".jsonl": mutate_json_lines,
    ".toml": mutate_toml,
    ".safetensors": mutate_safetensors,
    ".gz": mutate_gzip,
    ".xz": mutate_xz,
    ".zst": mutate_zstd,
    ".csv": mutate_text,
    ".tsv": mutate_text,
    ".txt": mutate_text,
}


def mutate_file(name: str, data: bytes, chance: random.Random) -> bytes:
    """A mutant of a file, by its name; no bombs of raw text, which may be of any size."""
    mutation = BY_NAME.get(name[name.rfind(".") :], mutate_bytes)
    return mutate_bytes(data, chance) if not data or ".txt." in name else mutation(data, chance)
