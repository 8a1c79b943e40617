"""Tensor bundles: what TensorFlow wrote, what we write, and files that are damaged."""

from __future__ import annotations

import base64
import random
import struct
import sys
from pathlib import Path

import numpy
import pytest

from litebert.base.errors import FileError, FormatError, LitebertError, MissingExtraError
from litebert.base.protobuf import field, read_varint
from litebert.convert import bundle, leveldb
from litebert.convert.bundle import list_variables, read_variable, write_bundle

# Written by tf.compat.v1.train.Saver of TensorFlow 2.21: prefix-compressed keys, six data types.
TENSORFLOW_INDEX = (
    "AAAGCAEaAggBAAsLZ2xvYmFsX3N0ZXAICRIAKAg1UygxdAALEWxheWVyL2JyYWluCA4SBBICCAIgCCgENeXhm9gGBBFo"
    "YWxmCBMSBBICCAIgDCgENfltMeAGBhVrZXJuZWwIARIIEgIIAhICCAMgECgYNcDbPRcMBxEvYWRhbV9tCAISBBICCAIg"
    "KCgQNezQ4r0ABRFzbWFsbAgDEgQSAggCIDgoCDWrnHwZAAAAAAEAAAAAAn7FFQAAAAABAAAAAMDyobAAAQN0ALMBAAAA"
    "AAEAAAAA96QvxLgBCMUBDwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABX+4CLJHVH2w=="
)
TENSORFLOW_DATA = (
    "NRzc3wIAAACAPyDAADgAQgAAAAAAAIA/AAAAQAAAQEAAAIBAAACgQAAAAAAAAPg/AAAAAAAAAMAHAAAA+P///w=="
)
TENSORFLOW_VALUES = {
    "global_step": numpy.array(12345678901, "int64"),
    "layer/brain": numpy.array([1.0, -2.5], "float32"),
    "layer/half": numpy.array([0.5, 3], "float16"),
    "layer/kernel": numpy.arange(6, dtype="float32").reshape(2, 3),
    "layer/kernel/adam_m": numpy.array([1.5, -2], "float64"),
    "small": numpy.array([7, -8], "int32"),
}


def index_of(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".index")


def data_of(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".data-00000-of-00001")


def read_all(prefix: Path) -> dict[str, numpy.ndarray]:
    return {name: read_variable(prefix, entry) for name, entry in list_variables(prefix).items()}


def assert_same(found: dict[str, numpy.ndarray], expected: dict[str, numpy.ndarray]) -> None:
    assert list(found) == sorted(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        numpy.testing.assert_array_equal(found[name], values, strict=True)


@pytest.fixture
def from_tensorflow(tmp_path: Path) -> Path:
    prefix = tmp_path / "g.ckpt"
    index_of(prefix).write_bytes(base64.b64decode(TENSORFLOW_INDEX))
    data_of(prefix).write_bytes(base64.b64decode(TENSORFLOW_DATA))
    return prefix


@pytest.fixture
def many(tmp_path: Path) -> tuple[Path, dict[str, numpy.ndarray]]:
    """Enough variables for an index of several blocks."""
    source = numpy.random.default_rng(7)
    tensors = {
        f"bert/encoder/layer_{number}/weights": source.normal(size=(3, number % 4)).astype(
            "float32"
        )
        for number in range(300)
    }
    tensors["é"] = numpy.array(5, "int64")
    write_bundle(tmp_path / "many.ckpt", tensors)
    return tmp_path / "many.ckpt", tensors


def test_reads_what_tensorflow_wrote(from_tensorflow: Path) -> None:
    assert_same(read_all(from_tensorflow), TENSORFLOW_VALUES)


def test_many_variables_come_back(many: tuple[Path, dict[str, numpy.ndarray]]) -> None:
    prefix, tensors = many
    assert index_of(prefix).stat().st_size > 3 * leveldb.BLOCK
    assert_same(read_all(prefix), tensors)


def test_arrays_of_any_layout_are_written_in_order(tmp_path: Path) -> None:
    tensors = {
        "big": numpy.arange(4, dtype=">f8"),
        "transposed": numpy.arange(6, dtype="float32").reshape(2, 3).T,
        "empty": numpy.zeros((0, 5), "float16"),
    }
    write_bundle(tmp_path / "x", tensors)
    found = read_all(tmp_path / "x")
    for name, values in tensors.items():
        numpy.testing.assert_array_equal(found[name], values)


def test_an_empty_bundle_has_no_variables(tmp_path: Path) -> None:
    write_bundle(tmp_path / "x", {})
    assert list_variables(tmp_path / "x") == {}


def test_flipped_bits_are_errors(from_tensorflow: Path) -> None:
    """One bit in every byte, and every bit of the footer, the only part without a checksum."""
    chance = random.Random(3)
    for path in (index_of(from_tensorflow), data_of(from_tensorflow)):
        whole = path.read_bytes()
        flips = [(at, chance.randrange(8)) for at in range(len(whole))]
        flips += [(at, bit) for at in range(len(whole) - 48, len(whole) - 8) for bit in range(8)]
        for at, bit in flips:
            broken = bytearray(whole)
            broken[at] ^= 1 << bit
            path.write_bytes(broken)
            with pytest.raises(FileError, match=path.name):
                read_all(from_tensorflow)
        path.write_bytes(whole)


def test_every_truncation_is_an_error(from_tensorflow: Path) -> None:
    for path in (index_of(from_tensorflow), data_of(from_tensorflow)):
        whole = path.read_bytes()
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            with pytest.raises(FileError):
                read_all(from_tensorflow)
        path.write_bytes(whole)


def test_damage_to_a_longer_file_is_an_error(many: tuple[Path, dict[str, numpy.ndarray]]) -> None:
    prefix, _ = many
    chance = random.Random(11)
    whole = index_of(prefix).read_bytes()
    for _ in range(100):
        at = chance.randrange(len(whole))
        broken = bytearray(whole)
        broken[at] ^= 1 << chance.randrange(8)
        for content in (bytes(broken), whole[:at], whole[at:]):
            if content != whole:
                index_of(prefix).write_bytes(content)
                with pytest.raises(LitebertError):
                    list_variables(prefix)


def test_hostile_bytes_with_right_checksums_are_an_error_or_read(
    from_tensorflow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the checksums out of the way, the parser alone must neither crash nor hang."""
    chance = random.Random(5)
    for module in (bundle, leveldb):
        monkeypatch.setattr(module, "masked_crc32c", lambda content: 0)
    whole = index_of(from_tensorflow).read_bytes()
    blank = bytearray(whole)
    for start, size in ((0, 0xB3), (0xB8, 8), (0xC5, 15)):
        blank[start + size + 1 : start + size + 5] = bytes(4)
    for _ in range(800):
        broken = bytearray(blank)
        for _ in range(chance.randint(1, 4)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        index_of(from_tensorflow).write_bytes(broken)
        try:
            read_all(from_tensorflow)
        except LitebertError:
            continue


def test_a_huge_claim_is_refused_before_anything_is_allocated(from_tensorflow: Path) -> None:
    entry = list_variables(from_tensorflow)["layer/kernel"]
    huge = bundle.BundleEntry(entry.name, "float32", (2**40,), 0, 1, 0, 2**42, entry.crc32c)
    with pytest.raises(FileError, match="truncated"):
        read_variable(from_tensorflow, huge)


def test_compressed_blocks_are_named(tmp_path: Path) -> None:
    write_bundle(tmp_path / "x", {"a": numpy.zeros(2, "float32")})
    content = bytearray(index_of(tmp_path / "x").read_bytes())
    handles = bytes(content[-48:-8])
    _, at = read_varint(handles, 0)
    _, at = read_varint(handles, at)
    start, at = read_varint(handles, at)
    size, _ = read_varint(handles, at)
    content[start + size] = 1
    checksum = leveldb.masked_crc32c(bytes(content[start : start + size + 1]))
    content[start + size + 1 : start + size + 5] = struct.pack("<I", checksum)
    index_of(tmp_path / "x").write_bytes(content)
    with pytest.raises(FormatError, match="Snappy"):
        list_variables(tmp_path / "x")


def rewritten(prefix: Path, key: bytes, entry: bytes) -> None:
    """An index with one entry of our choosing and right checksums."""
    header = field(1, 1)
    index_of(prefix).write_bytes(leveldb.write_table([(b"", header), (key, entry)]))


@pytest.mark.parametrize(
    ("key", "entry", "message"),
    [
        (b"a", field(1, 1) + field(7, b""), "partitioned"),
        (b"\0a", field(1, 1), "partitioned"),
        (b"\xff", field(1, 1), "UTF-8"),
        (b"a", field(1, 1) + field(5, 8), "needs 4"),
        (b"a", field(1, 1) + field(3, 1) + field(5, 4), "place"),
        (b"a", field(1, b"x"), "not a count"),
        (b"a", field(1, 1) + field(4, 2**63) + field(5, 4), "not a count"),
        (b"a", field(2, 5), "not a message"),
        (b"a", bytes([1 << 3 | 3]), "unknown kind"),
        (b"a", b"\xff" * 11, "ten bytes"),
        (b"a" * 5000, field(1, 1), "length"),
    ],
)
def test_impossible_entries_are_errors(
    tmp_path: Path, key: bytes, entry: bytes, message: str
) -> None:
    rewritten(tmp_path / "x", key, entry)
    with pytest.raises(FileError, match=message):
        list_variables(tmp_path / "x")


def test_an_empty_variable_of_impossible_shape_is_an_error(tmp_path: Path) -> None:
    sizes = b"".join(field(2, field(1, size)) for size in (0, 2**62, 2**62))
    entry = field(1, 1) + field(2, sizes)
    checksum = struct.pack("<I", leveldb.masked_crc32c(b""))
    rewritten(tmp_path / "x", b"a", entry + bytes([6 << 3 | 5]) + checksum)
    data_of(tmp_path / "x").write_bytes(b"")
    with pytest.raises(FileError, match="impossible shape"):
        read_all(tmp_path / "x")


def test_text_variables_are_listed_but_not_read(tmp_path: Path) -> None:
    rewritten(tmp_path / "x", b"a", field(1, 7))
    data_of(tmp_path / "x").write_bytes(b"")
    with pytest.raises(FormatError, match="data type 7"):
        read_all(tmp_path / "x")


def test_big_endian_and_headerless_files_are_named(tmp_path: Path) -> None:
    index = index_of(tmp_path / "x")
    index.write_bytes(leveldb.write_table([(b"", field(1, 1) + field(2, 1))]))
    with pytest.raises(FormatError, match="big-endian"):
        list_variables(tmp_path / "x")
    index.write_bytes(leveldb.write_table([(b"a", field(1, 1))]))
    with pytest.raises(FormatError, match="no header"):
        list_variables(tmp_path / "x")


def test_missing_files_are_named(from_tensorflow: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"nothing\.index: no such file"):
        list_variables(tmp_path / "nothing")
    entries = list_variables(from_tensorflow)
    data_of(from_tensorflow).unlink()
    with pytest.raises(FileError, match="data-00000-of-00001: no such file"):
        read_variable(from_tensorflow, entries["small"])


def test_a_version_1_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.ckpt").write_bytes(b"anything")
    with pytest.raises(FormatError, match="V1"):
        list_variables(tmp_path / "model.ckpt")


def test_types_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="complex64"):
        write_bundle(tmp_path / "x", {"a": numpy.zeros(1, "complex64")})
    with pytest.raises(FormatError, match="cannot be written"):
        write_bundle(tmp_path / "x", {"": numpy.zeros(1, "float32")})


def test_the_missing_extra_is_named(from_tensorflow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    with pytest.raises(MissingExtraError, match="google-crc32c"):
        list_variables(from_tensorflow)
