"""The model file's reader: equal to the protocol buffer library's, and unmoved by bad files."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece

from litebert.base.errors import FormatError
from litebert.text.backend import BadTokenizer
from litebert.text.sentencepiece_file import (
    PieceType,
    charsmap_has_spaces,
    check_charsmap,
    read_model,
    write_model,
)
from litebert.text.tokenizer import load_tokenizer

from .conftest import Trained, many_sentences

ROWS = [
    ("<pad>", 0.0, PieceType.CONTROL),
    ("<unk>", 0.0, PieceType.UNKNOWN),
    ("[CLS]", 0.0, PieceType.CONTROL),
    ("[SEP]", 0.0, PieceType.CONTROL),
    ("[MASK]", 0.0, PieceType.CONTROL),
    ("▁", -1.5, PieceType.NORMAL),
    ("a", -2.5, PieceType.NORMAL),
]


@pytest.fixture(scope="module")
def with_charsmap(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small model that carries the library's own NFKC table."""
    prefix = tmp_path_factory.mktemp("model") / "nfkc"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(many_sentences()), model_prefix=str(prefix), vocab_size=200,
        pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP],[MASK]",
        normalization_rule_name="nmt_nfkc", minloglevel=3,
    )  # fmt: skip
    return prefix.with_suffix(".model").read_bytes()


def test_what_we_read_is_what_protobuf_reads(with_charsmap: bytes) -> None:
    protobuf = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    theirs = protobuf.ModelProto.FromString(with_charsmap)
    ours = read_model(with_charsmap)
    assert ours.pieces == [piece.piece for piece in theirs.pieces]
    assert ours.scores == [piece.score for piece in theirs.pieces]
    assert ours.types == [piece.type for piece in theirs.pieces]
    assert ours.charsmap == theirs.normalizer_spec.precompiled_charsmap
    assert ours.add_dummy_prefix
    assert ours.remove_extra_whitespaces
    assert ours.escape_whitespaces
    assert not ours.whitespace_as_suffix


def test_what_we_write_we_and_the_library_read() -> None:
    data = write_model(ROWS)
    model = read_model(data)
    assert list(zip(model.pieces, model.scores, model.types, strict=True)) == ROWS
    library = sentencepiece.SentencePieceProcessor(model_proto=data)
    assert library.encode("a") == [5, 6]


def test_the_nfkc_table_is_sound_and_never_looks_across_a_space(with_charsmap: bytes) -> None:
    charsmap = read_model(with_charsmap).charsmap
    check_charsmap(charsmap)
    assert not charsmap_has_spaces(charsmap)


def test_a_rule_across_a_space_is_seen_and_words_are_not_cut(tmp_path: Path) -> None:
    rules = tmp_path / "rules.tsv"
    rules.write_text("61 20 62\t63\n")  # "a b" becomes "c"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d", "d c b a", "aa bb cc"] * 9), vocab_size=12,
        model_prefix=str(tmp_path / "m"), normalization_rule_tsv=str(rules), pad_id=0, unk_id=1,
        bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP],[MASK]", minloglevel=3,
        hard_vocab_limit=False,
    )  # fmt: skip
    tokenizer = load_tokenizer(tmp_path / "m.model")
    assert not tokenizer._backend.splits_at_spaces
    assert tokenizer.encode_batch(["a b"])[0].tolist() == tokenizer.encode("c")
    assert tokenizer.encode_with_offsets("a b").ids == tokenizer.encode("a b")


def block(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + bytes([len(content)]) + content


def piece(text: bytes = b"x", score: float = -1.0, kind: int = 1) -> bytes:
    return block(1, block(1, text) + b"\x15" + struct.pack("<f", score) + bytes([0x18, kind]))


GOOD = write_model(ROWS)


@pytest.mark.parametrize(("data", "message"), [
    (b"", "no pieces"),
    (b"hello, this is no model", "wire type|ends in the middle|not a SentencePiece"),
    (b"\xff" * 40, "number without an end"),
    (b"\x0a\xff\xff\xff\x7f", "ends in the middle"),
    (b"\x02\x00", "field without a number"),
    (b"\x08\x01", "number where text belongs"),
    (GOOD + piece(b"\xff"), "piece 7 is not UTF-8"),
    (GOOD + piece(b""), "piece 7 is 0 bytes"),
    (GOOD + piece(score=float("nan")), "score nan"),
    (GOOD + piece(score=float("-inf")), "score -inf"),
    (GOOD + piece(kind=9), "unknown type 9"),
    (GOOD + piece(b"a"), "same piece twice"),
    (GOOD + piece(kind=2), "2 unknown pieces"),
    (GOOD + piece(kind=6), "falls back to bytes"),
    (GOOD + block(2, b""), "settings twice"),
    (piece() + piece(b"<unk>", kind=2) + block(2, b"\x18\x02"), "BPE model"),
    (piece(b"<unk>", kind=2), "no ordinary piece"),
    (GOOD[:-2], "ends in the middle"),
])  # fmt: skip
def test_bad_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadTokenizer, match=message):
        read_model(data)


def test_a_missing_special_piece_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.model"
    path.write_bytes(write_model(ROWS[:4] + ROWS[5:]))
    with pytest.raises(FormatError, match=r"no mask token \(\[MASK\] or <mask>\)"):
        load_tokenizer(path)


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.model"
    with path.open("wb") as stream:
        stream.truncate(65 * 2**20)
    with pytest.raises(FormatError, match="too large"):
        load_tokenizer(path)


def test_a_table_that_points_outside_is_refused(with_charsmap: bytes) -> None:
    charsmap = read_model(with_charsmap).charsmap
    size = int.from_bytes(charsmap[:4], "little")
    far = (0x1FFFFF << 10 | 1 << 9).to_bytes(4, "little")
    for broken in (
        charsmap[:4] + far + charsmap[8:],
        (size + 4).to_bytes(4, "little") + charsmap[4:],
        (2**32 - 4).to_bytes(4, "little") + charsmap[4:],
        charsmap[: 4 + size],
        charsmap[: 4 + size] + b"x\0",
        charsmap[:-1] + b"x",
        b"\0\0\0\0" + b"\0" * 8,
        b"\0",
    ):
        with pytest.raises(BadTokenizer, match="normalization table"):
            check_charsmap(broken)


FUZZ = """
import random, sys
from pathlib import Path
from litebert.base.errors import LitebertError
from litebert.text.tokenizer import load_tokenizer
path, seed = Path(sys.argv[1]), int(sys.argv[2])
good, chooser, refused, tries = path.read_bytes(), random.Random(seed), 0, 60
for trial in range(tries):
    data = bytearray(good)
    if trial % 3 == 0:
        del data[chooser.randrange(len(data)):]
    elif trial % 3 == 1:
        for _ in range(chooser.choice([1, 5, 50])):
            data[chooser.randrange(len(data))] ^= 1 << chooser.randrange(8)
    else:
        at = chooser.randrange(len(data))
        data[at:at + 8] = chooser.randbytes(8)
    path.write_bytes(data)
    try:
        tokenizer = load_tokenizer(path)
        tokenizer.encode_batch(["The cat, 2,000 ﬁve ｶﾞ 한국", "e\\u0301 \\u3000 ①"])
        tokenizer.encode_with_offsets("The ①② cat ｶﾞ")
    except LitebertError:
        refused += 1
print(refused, tries)
"""


@pytest.mark.parametrize("kind", ["sentencepiece", "wordpiece", "bpe", "charsmap"])
def test_damaged_files_never_crash_the_process(
    trained: Trained, with_charsmap: bytes, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "spiece.model"
    if kind == "charsmap":
        path.write_bytes(with_charsmap)
    else:
        trained(kind, "none").save(tmp_path)
        (tmp_path / "tokenizer_config.json").unlink()
        names = {"wordpiece": "vocab.txt", "bpe": "vocab.json", "sentencepiece": "spiece.model"}
        path = tmp_path / names[kind]
    command = [sys.executable, "-c", FUZZ, str(path), str(random.Random(kind).randrange(999))]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    refused, tries = map(int, run.stdout.split())
    assert 0.2 * tries < refused <= tries
