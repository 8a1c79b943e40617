"""Commands that are refused, stopped or succeed, and what is there to work on.

A user's mistake is one sentence, exit code 2, no traceback, and nothing half-written.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import litebert
from litebert.corpus.store import Store
from tests.corpus.stores import (
    make_documents,
    make_store,
    write_bytes,
    write_pieces,
    write_wordpiece,
)
from tests.mistakes.pretraining import ALBERT
from tests.parity.families import build, config
from tests.test_cli import run

Refused = Callable[..., str]
Trained = Callable[..., tuple[str, str]]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that must fail as a mistake of the user; its one sentence."""

    def call(*arguments: object) -> str:
        code = run(monkeypatch, *arguments)
        out, err = capsys.readouterr()
        assert code == 2
        assert out == ""
        assert err.startswith("litebert: ")
        assert err.index("\n") == len(err) - 1
        assert len(err) < 2000
        return err

    return call


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models that transformers saved."""
    folder = tmp_path_factory.mktemp("foreign")
    build("AlbertForPreTraining", config("albert")).save_pretrained(folder / "albert")
    build("RobertaForMaskedLM", config("roberta")).save_pretrained(folder / "roberta")
    return folder


@pytest.fixture
def source(foreign: Path, tmp_path: Path) -> Path:
    """A copy of the ALBERT, to damage."""
    return Path(shutil.copytree(foreign / "albert", tmp_path / "source"))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Trained:
    """Run a command that must succeed; what it prints on either stream."""

    def call(*words: object) -> tuple[str, str]:
        code = run(monkeypatch, *words)
        out, err = capsys.readouterr()
        assert code == 0, err
        assert "Traceback" not in err
        return out, err

    return call


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that says this and that and then fails; its last sentence."""

    def call(*words: object) -> str:
        code = run(monkeypatch, *words)
        out, err = capsys.readouterr()
        assert code == 2
        assert out == ""
        assert "Traceback" not in err
        assert "Warning" not in err
        assert err.count("litebert: ") == 1
        sentence = err.splitlines()[-1]
        assert sentence.startswith("litebert: ")
        return sentence

    return call


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    """One text in three kinds of pieces, with and without held-out documents."""
    folder, documents = tmp_path_factory.mktemp("stores"), make_documents(0, 40, (1, 8), (1, 8))
    kinds = {"pieces": write_pieces, "wordpiece": write_wordpiece, "bytes": write_bytes}
    made = {}
    for kind, write in kinds.items():
        tokenizer = write(folder / kind / "tokenizer")
        made[kind] = make_store(folder / kind / "store", documents, tokenizer, held_out=0.2)
    tokenizer = folder / "pieces" / "tokenizer"
    made["whole"] = make_store(folder / "pieces" / "whole", documents, tokenizer)
    made["empty"] = make_store(folder / "pieces" / "empty", documents, tokenizer, held_out=0.9999)
    return made


@pytest.fixture(scope="session")
def corpus(stores: dict[str, Store]) -> Path:
    return stores["pieces"].folders[0]


@pytest.fixture(scope="session")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; tests that change it work on a copy."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    name, *overrides = ALBERT
    assert litebert.pretrain(name, corpus, folder, overrides=overrides).finished
    return folder
