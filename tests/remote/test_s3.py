"""The same against a real S3 API, over http on loopback: formats, round trips, refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("moto", reason="moto is not installed; run `make cluster`")
pytest.importorskip("s3fs", reason="s3fs is not installed; run `make cluster`")

from tests.corpus.stores import write_wordpiece
from tests.remote.corpora import assert_equal_folders, write_formats
from tests.remote.s3 import BUCKET, environment, s3_client, s3_server
from tests.train.runs import assert_equal_endings, write_store

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with s3_server() as port:
        s3_client(port).create_bucket(Bucket=BUCKET)
        yield port


@pytest.fixture
def s3(port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in environment(port).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path / "cache"))
    return s3_client(port)


def run(*command: object, code: int = 0) -> str:
    """A command in a process of its own, as a user's; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "litebert", *map(str, command)], capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr[-2000:]
    return done.stdout if code == 0 else done.stderr


def upload(s3: Any, folder: Path, prefix: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            s3.upload_file(str(path), BUCKET, f"{prefix}/{path.relative_to(folder).as_posix()}")


def download(s3: Any, prefix: str, folder: Path) -> Path:
    for entry in s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix + "/").get("Contents", []):
        path = folder / entry["Key"].removeprefix(prefix + "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file(BUCKET, entry["Key"], str(path))
    return folder


def test_every_format_and_a_store_there_and_back(s3: Any, tmp_path: Path) -> None:
    write_formats(tmp_path / "raw")
    upload(s3, tmp_path / "raw", "formats/raw")
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    upload(s3, tokenizer, "formats/tokenizer")
    run("prepare", tmp_path / "raw", "--tokenizer", tokenizer, "--out", tmp_path / "here")
    there = f"s3://{BUCKET}/formats"
    run("prepare", f"{there}/raw/*", "--tokenizer", f"{there}/tokenizer", "--out", f"{there}/out")
    assert_equal_folders(tmp_path / "here", download(s3, "formats/out", tmp_path / "back"))
    assert "it was there before" in run(
        "prepare", f"{there}/raw/*", "--tokenizer", f"{there}/tokenizer", "--out", f"{there}/out"
    )


def test_a_tokenizer_is_trained_from_there_to_there(s3: Any, tmp_path: Path) -> None:
    write_formats(tmp_path / "raw")
    upload(s3, tmp_path / "raw", "train/raw")
    for inputs, out in (
        (tmp_path / "raw" / "b.jsonl", tmp_path / "here"),
        (f"s3://{BUCKET}/train/raw/b.jsonl", f"s3://{BUCKET}/train/tokenizer"),
    ):
        run("tokenizer", "train", inputs, "--out", out, "--vocab-size", 40, "--kind", "wordpiece")
    assert_equal_folders(tmp_path / "here", download(s3, "train/tokenizer", tmp_path / "back"))


def test_a_run_there_ends_like_one_here_and_resumes_on_another_machine(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = write_store(tmp_path / "corpus")
    upload(s3, store, "run/corpus")
    changes = [
        "model.hidden_size=32", "model.embedding_size=16", "model.num_attention_heads=2",
        "model.intermediate_size=64", "data.max_length=32", "data.batch_size=8", "log.every=2",
        "checkpoint.every=3", "precision=fp32",
    ]  # fmt: skip
    options = [word for change in changes for word in ("--set", change)]
    preset = ("pretrain", "albert-tiny", "--budget", "14steps", *options)
    run(*preset, "--corpus", store, "--out", tmp_path / "here")
    there = ("--corpus", f"s3://{BUCKET}/run/corpus", "--out", f"s3://{BUCKET}/run/run")
    run(*preset, *there)
    whole = download(s3, "run/run", tmp_path / "back")
    assert_equal_endings(whole, tmp_path / "here")
    # Another machine finds checkpoint 9 alone, the newest one being without its manifest.
    keys = [e["Key"] for e in s3.list_objects_v2(Bucket=BUCKET, Prefix="run/run/")["Contents"]]
    last = max(key for key in keys if "/checkpoints/" in key).rpartition("/")[0]
    s3.delete_object(Bucket=BUCKET, Key=f"{last}/manifest.json")
    for key in keys:
        if "/model/" in key:
            s3.delete_object(Bucket=BUCKET, Key=key)
    record = json.loads((whole / "run.json").read_text()) | {"finished": False}
    s3.put_object(Bucket=BUCKET, Key="run/run/run.json", Body=json.dumps(record).encode())
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path / "another-machine"))
    run(*preset, *there)
    assert_equal_endings(download(s3, "run/run", tmp_path / "again"), tmp_path / "here")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://nothing-here/raw/*.txt", "no such file"),
        (f"s3://{BUCKET}/nothing/", "no such file"),
    ],
)
def test_what_is_not_there(url: str, message: str, s3: Any, tmp_path: Path) -> None:
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    said = run("prepare", url, "--tokenizer", tokenizer, "--out", tmp_path / "out", code=2)
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_bucket_that_does_not_exist(s3: Any, tmp_path: Path) -> None:
    files, tokenizer = write_formats(tmp_path / "raw"), write_wordpiece(tmp_path / "tokenizer")
    said = run(
        "prepare", files[0], "--tokenizer", tokenizer, "--out", "s3://nothing-here/out", code=2
    )
    assert "no such file, folder or bucket" in said


def test_nobody_answers(tmp_path: Path, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    said = run(
        "prepare", "s3://bucket/a.txt", "--tokenizer", tokenizer, "--out", tmp_path / "out", code=2
    )
    assert "trying again" in said
    assert "after 6 attempts" in said.splitlines()[-1]
