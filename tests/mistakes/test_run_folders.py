"""Folders that a run cannot be written to: other files, other settings, another run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from litebert.base.files import lock_folder
from litebert.corpus.store import Store
from tests.mistakes.conftest import Refused, Trained
from tests.mistakes.pretraining import ALBERT, arguments, assert_all_in, snapshot


def test_a_folder_that_is_no_run(refused: Refused, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("Years of work.")
    before = snapshot(tmp_path / "thesis")
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "thesis"))
    assert_all_in([str(tmp_path / "thesis"), "already exists", "another folder"], sentence)
    assert snapshot(tmp_path / "thesis") == before, "something was left in a foreign folder"


def test_a_foreign_file_called_lock_keeps_its_content(
    refused: Refused, corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "door").mkdir()
    (tmp_path / "door" / "lock").write_text("The combination is 1234.")
    (tmp_path / "door" / "key").write_text("Under the mat.")
    refused(*arguments(ALBERT, corpus, tmp_path / "door"))
    assert (tmp_path / "door" / "lock").read_text() == "The combination is 1234."


def test_a_folder_whose_lock_cannot_be_written(
    refused: Refused, corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "run" / "lock").mkdir(parents=True)
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run"))
    assert_all_in([str(tmp_path / "run")], sentence)


def test_a_file_in_the_way(refused: Refused, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("Not a folder.")
    for out in (tmp_path / "run", tmp_path / "run" / "below"):
        assert_all_in([str(out), "cannot be written"], refused(*arguments(ALBERT, corpus, out)))
    assert (tmp_path / "run").read_text() == "Not a folder."


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["data.batch_size=8"], ["data.batch_size", "4 there, 8 wanted"]),
        (["seed=5"], ["seed", "0 there, 5 wanted"]),
        (["--budget", "9steps"], ["budget", "2steps there, 9steps wanted"]),
        (["model.hidden_size=32"], ["model.hidden_size", "16 there, 32 wanted"]),
    ],
)
def test_a_run_of_other_settings(
    more: list[str], words: list[str], refused: Refused, finished: Path, corpus: Path
) -> None:
    before = snapshot(finished)
    sentence = refused(*arguments(ALBERT, corpus, finished, *more))
    assert_all_in([str(finished), "other settings", *words], sentence)
    assert snapshot(finished) == before


def test_a_run_of_another_corpus(
    refused: Refused, finished: Path, stores: dict[str, Store]
) -> None:
    sentence = refused(*arguments(ALBERT, stores["whole"].folders[0], finished))
    assert_all_in([str(finished), "corpus"], sentence)


def test_a_finished_run_is_left_as_it_is(trained: Trained, finished: Path, corpus: Path) -> None:
    before = snapshot(finished)
    out, _ = trained(*arguments(ALBERT, corpus, finished))
    assert "2 steps" in out
    assert snapshot(finished) == before


def test_settings_that_may_change(
    trained: Trained, finished: Path, corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    trained(*arguments(ALBERT, corpus, tmp_path / "run", "log.every=3", "checkpoint.keep=1"))


def test_a_damaged_description(
    refused: Refused, finished: Path, corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    for text in ("", "{", "[]", "null", "{}", '{"settings": 3}'):
        (tmp_path / "run" / "run.json").write_text(text)
        assert_all_in(
            [str(tmp_path / "run")], refused(*arguments(ALBERT, corpus, tmp_path / "run"))
        )


def test_a_run_that_is_under_way(
    refused: Refused, finished: Path, corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    description = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**description, "finished": False}))
    before = snapshot(tmp_path / "run")
    with lock_folder(tmp_path / "run", "litebert pretrain"):
        sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run"))
    assert_all_in([str(tmp_path / "run"), "another", "litebert pretrain"], sentence)
    assert snapshot(tmp_path / "run") == before
