"""The commands that prepare text: from raw files to a store, and every way to get it wrong."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

import litebert
from litebert.corpus.preparing import workers
from tests.mistakes.conftest import Refused, refused
from tests.test_cli import run, say

__all__ = ["refused", "say"]

NOUNS = ["harbour", "ladder", "mirror", "orchard", "pencil", "river", "saddle", "teapot", "wagon"]
VERBS = ["follows", "carries", "paints", "repairs", "forgets", "watches", "borrows", "finds"]


def story(seed: int) -> str:
    chance = random.Random(seed)
    sentences = [
        f"The {chance.choice(NOUNS)} {chance.choice(VERBS)} a {chance.choice(NOUNS)} "
        f"and {chance.randint(2, 99)} others."
        for _ in range(chance.randint(2, 8))
    ]
    return " ".join(sentences)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "stories.jsonl"
    file.write_text("".join(json.dumps({"text": story(n)}) + "\n" for n in range(200)))
    return file


@pytest.fixture(scope="module")
def tokenizer(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer") / "made"
    litebert.train_tokenizer([str(text)], folder, vocab_size=120)
    return folder


@pytest.fixture(scope="module")
def store(text: Path, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "made"
    litebert.prepare([str(text)], tokenizer, folder, held_out=0.2, num_workers=1)
    return folder


def run_quietly(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: object) -> str:
    """Run a command that shows its progress on stderr; what it prints."""
    assert run(monkeypatch, *arguments) == 0
    return capsys.readouterr().out


# ---------------------------------------------------------------------------- the road


@pytest.mark.parametrize("kind", ["sentencepiece", "wordpiece", "bpe"])
def test_the_road_from_text_to_batches(
    kind: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    vocabulary = 320 if kind == "bpe" else 120
    made, out = tmp_path / "tokenizer", tmp_path / "corpus"
    said = run_quietly(
        monkeypatch, capsys, "tokenizer", "train", text, "--out", made, "--kind", kind,
        "--vocab-size", vocabulary,
    )  # fmt: skip
    assert f"{kind}, {vocabulary} tokens" in said
    said = run_quietly(
        monkeypatch, capsys, "prepare", text, "--tokenizer", made, "--out", out, "--num-workers", 1
    )
    assert "200 documents" in said
    assert "sample: " in said
    said = run_quietly(monkeypatch, capsys, "inspect", out, "--input-format", "albert", "--check")
    assert "unknown" in said
    assert "second segment" in said
    corpus = litebert.open_store(out)
    settings = litebert.LoaderSettings(max_length=32, batch_size=8)
    masker = litebert.Masker(litebert.Masking(), corpus.tokenizer)
    batch = next(litebert.Loader(corpus, settings, masker))
    assert len(batch) == 8
    assert len(batch.targets) > 0


def test_show_prints_tokens_and_places(tokenizer: Path, say: Any) -> None:
    said = say("tokenizer", "show", tokenizer, "The  Harbour, [MASK]!")
    model = litebert.load_tokenizer(tokenizer)
    encoding = model.encode_with_offsets("The  Harbour, [MASK]!")
    rows = [line.split("│")[1:-1] for line in said.splitlines() if "│" in line]
    assert [row[0].strip() for row in rows] == encoding.tokens
    assert [int(row[1]) for row in rows] == encoding.ids
    assert model.special.mask not in encoding.ids
    assert "normalized: the harbour, [mask]!" in said


def test_inspect_json_adds_up(store: Path, say: Any) -> None:
    report = json.loads(say("inspect", store, "--json"))
    assert report["documents"] == 200
    assert report["train_documents"] + report["held_out_documents"] == 200
    assert report["train_tokens"] + report["held_out_tokens"] == report["tokens"]
    assert sum(report["sentence_tokens"].values()) == report["sentences"]
    assert sum(report["document_tokens"].values()) == 200
    assert report["unknown_fraction"] < 0.01
    assert report["sample"].startswith(story(0)[:20].lower())


def test_standard_input(
    tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "piped").write_text(f"{story(1)}\n\n{story(2)}\n")
    with (tmp_path / "piped").open(encoding="utf-8") as piped:
        monkeypatch.setattr("sys.stdin", piped)
        said = run_quietly(
            monkeypatch, capsys, "prepare", "-", "--tokenizer", tokenizer,
            "--out", tmp_path / "store", "--num-workers", 1,
        )  # fmt: skip
    assert "2 documents" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal(
    number: int, text: Path, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:  # fmt: skip
    before = signal.getsignal(signal.SIGTERM)
    make = workers.make_shard

    def stop(*arguments: Any) -> Any:
        made = make(*arguments)
        os.kill(os.getpid(), number)
        return made

    command = ["prepare", text, "--tokenizer", tokenizer, "--out", tmp_path / "store"]
    monkeypatch.setattr(workers, "make_shard", stop)
    assert run(monkeypatch, *command, "--num-workers", 1) == 130
    assert capsys.readouterr().err.endswith("run the same command to resume\n")
    assert signal.getsignal(signal.SIGTERM) is before
    monkeypatch.setattr(workers, "make_shard", make)
    said = run_quietly(monkeypatch, capsys, *command, "--num-workers", 1)
    assert "1 shards were there from an earlier run" in said


# ---------------------------------------------------------------------------- bad input


def prepared(refused: Refused, tokenizer: Path, source: object, *more: object) -> str:
    out = Path(str(source)).parent / "out"
    said = refused(
        "prepare", source, "--tokenizer", tokenizer, "--out", out, "--num-workers", 1, *more
    )
    assert not out.exists()
    return said


LINE = json.dumps({"text": story(5)}).encode() + b"\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bad.jsonl", LINE + b'{"text": "\xff\xfe"}\n', ["line 2", "byte", "UTF-8"]),
        ("bad.txt", b"good words here\n\n" + b"caf\xe9 au lait\n", ["line 3", "UTF-8"]),
        ("empty.txt", b"", ["no text"]),
        ("picture.txt", b"\x89PNG\r\n\x1a\n" + bytes(100), ["PNG"]),
        ("binary.txt", bytes(range(256)) * 9, ["binary"]),
        ("keys.jsonl", LINE + b'{"body": "x", "title": "y"}\n', ["line 2", "'text'", "body"]),
        ("list.jsonl", b"[1, 2]\n", ["line 1"]),
        ("broken.jsonl", LINE + b'{"text": "x\n', ["line 2", "JSON"]),
        ("cut.jsonl.gz", gzip.compress(LINE * 200, mtime=0)[:-30], ["cut.jsonl.gz", "damaged"]),
        ("false.jsonl.gz", LINE, ["named .gz", "uncompressed"]),
        ("columns.csv", b"title,body\na,b\n", ["'text'", "title", "body"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_files(
    name: str, content: bytes, words: list[str], tokenizer: Path, refused: Refused, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    said = prepared(refused, tokenizer, tmp_path / name)
    assert name in said or "no text" in said
    for word in words:
        assert word in said


def test_a_line_of_200_megabytes(tokenizer: Path, refused: Refused, tmp_path: Path) -> None:
    with (tmp_path / "long.jsonl").open("wb") as stream:
        stream.write(b'{"text": "')
        for _ in range(200):
            stream.write(b"word " * 200_000)
        stream.write(b'"}\n')
    said = prepared(refused, tokenizer, tmp_path / "long.jsonl")
    assert "line 1" in said
    assert "longer than" in said


def test_skipping_is_counted_and_told(
    tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    file = tmp_path / "mixed.jsonl"
    file.write_bytes(LINE + b'{"text": "\xff"}\n' + LINE + b"{}\n" + b"{}\n")
    said = run_quietly(
        monkeypatch, capsys, "prepare", file, "--tokenizer", tokenizer, "--out", tmp_path / "store",
        "--on-error", "skip", "--num-workers", 1,
    )  # fmt: skip
    assert "2 documents" in said
    assert "skipped 2: " in said
    assert "skipped 1: " in said
    assert "line 4" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--part", "4/3"], ["4/3", "I/N"]),
        (["--part", "x"], ["x", "I/N"]),
        (["--held-out", "1.5"], ["held_out", "1.5"]),
        (["--language", "english!"], ["english!"]),
        (["--format", "docx"], ["docx"]),
        (["--on-error", "ignore"], ["ignore"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_options(
    options: list[str], words: list[str], text: Path, tokenizer: Path, refused: Refused,
    tmp_path: Path,
) -> None:  # fmt: skip
    shutil.copy(text, tmp_path / "text.jsonl")
    said = prepared(refused, tokenizer, tmp_path / "text.jsonl", *options)
    for word in words:
        assert word in said


def test_missing_things(text: Path, tokenizer: Path, refused: Refused, tmp_path: Path) -> None:
    assert "nowhere.txt" in prepared(refused, tokenizer, tmp_path / "nowhere.txt")
    assert "*.txt" in prepared(refused, tokenizer, tmp_path / "*.txt")
    assert "nothing" in prepared(refused, tmp_path / "nothing", text)
    (tmp_path / "folder").mkdir()
    assert "folder" in prepared(refused, tokenizer, tmp_path / "folder")


def test_a_vocabulary_larger_than_the_text(text: Path, refused: Refused, tmp_path: Path) -> None:
    for kind in ("sentencepiece", "wordpiece", "bpe"):
        said = refused(
            "tokenizer", "train", text, "--out", tmp_path / "t", "--kind", kind, "--vocab-size",
            20_000,
        )  # fmt: skip
        assert "20,000" in said
        assert "at most" in said
        assert not (tmp_path / "t").exists()
    said = refused("tokenizer", "train", text, "--out", tmp_path / "t", "--kind", "sentencpiece")
    assert "did you mean 'sentencepiece'?" in said


def test_a_store_of_another_tokenizer(
    store: Path, text: Path, tokenizer: Path, tmp_path: Path
) -> None:
    other = litebert.train_tokenizer([str(text)], tmp_path / "other", vocab_size=100)
    with pytest.raises(litebert.LitebertError, match="another tokenizer"):
        litebert.open_store(store).require_tokenizer(other, "the model")
    litebert.open_store(store).require_tokenizer(litebert.load_tokenizer(tokenizer), "the model")
    mixed = tmp_path / "mixed"
    shutil.copytree(store, mixed)
    shutil.rmtree(mixed / "tokenizer")
    other.save(mixed / "tokenizer")
    with pytest.raises(litebert.LitebertError, match="not the one it was prepared with"):
        _ = litebert.open_store(mixed).tokenizer


def test_a_damaged_shard(store: Path, refused: Refused, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(store, damaged)
    shard = next((damaged / "shards").iterdir())
    content = bytearray(shard.read_bytes())
    content[-len(content) // 2] ^= 1
    shard.write_bytes(content)
    assert shard.name in refused("inspect", damaged, "--check")
    with pytest.raises(litebert.LitebertError, match=shard.name):
        next(litebert.Loader(litebert.open_store(damaged), litebert.LoaderSettings(max_length=32)))


def test_no_store(store: Path, refused: Refused, tmp_path: Path) -> None:
    assert "no such store" in refused("inspect", tmp_path / "nothing")
    half = tmp_path / "half"
    shutil.copytree(store, half)
    (half / "manifest.json").unlink()
    assert "not a whole store" in refused("inspect", half)
    said = refused("inspect", store, "--input-format", "albrt")
    assert "did you mean 'albert'?" in said


def test_help_of_every_command_teaches(say: Any) -> None:
    for command in (["prepare"], ["inspect"], ["tokenizer", "train"], ["tokenizer", "show"]):
        assert "Example: litebert" in say(*command, "--help")
