"""Training on a corpus that is none, or that has nothing left to train on or to measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from litebert.corpus.store import Store
from litebert.train.metrics import read_metrics
from tests.corpus.stores import make_documents, make_store, write_pieces
from tests.mistakes.conftest import Refused, Trained
from tests.mistakes.pretraining import ALBERT, SPANBERT, arguments, assert_all_in


def test_no_such_corpus(refused: Refused, tmp_path: Path) -> None:
    sentence = refused(*arguments(ALBERT, tmp_path / "gone", tmp_path / "run"))
    assert_all_in([str(tmp_path / "gone"), "litebert prepare"], sentence)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_no_store(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("One sentence. Another.")
    sentence = refused(*arguments(ALBERT, tmp_path / "texts", tmp_path / "run"))
    assert_all_in([str(tmp_path / "texts"), "store"], sentence)
    assert not (tmp_path / "run").exists()


def test_a_file_as_corpus(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One sentence. Another.")
    sentence = refused(*arguments(ALBERT, tmp_path / "a.txt", tmp_path / "run"))
    assert_all_in([str(tmp_path / "a.txt"), "litebert prepare"], sentence)


def test_a_store_without_held_out_text_trains_and_says_so(
    trained: Trained, stores: dict[str, Store], tmp_path: Path
) -> None:
    out, err = trained(*arguments(ALBERT, stores["whole"].folders[0], tmp_path / "run"))
    assert "2 steps" in out
    assert "without held-out text" in err
    evaluations = [one for one in read_metrics(tmp_path / "run") if one.kind == "evaluation"]
    assert evaluations
    assert not any(one.loss for one in evaluations)


def test_held_out_text_that_no_document_fell_into_is_told_of(
    trained: Trained, tmp_path: Path
) -> None:
    """A hundredth of five documents is none: nothing can be measured, as without held-out text."""
    documents = make_documents(0, 5, (4, 8), (4, 8))
    store = make_store(tmp_path / "store", documents, write_pieces(tmp_path / "tokenizer"),
                       held_out=0.0001)  # fmt: skip
    out, err = trained(*arguments(ALBERT, store.folders[0], tmp_path / "run"))
    assert "2 steps" in out
    assert "held-out" in err


@pytest.mark.parametrize("initialization", ["truncated_normal", "corpus"])
@pytest.mark.parametrize("batch_by", ["sequences", "tokens"])
def test_nothing_left_to_train_on(
    batch_by: str, initialization: str, stopped: Refused, stores: dict[str, Store], tmp_path: Path
) -> None:
    folder = stores["empty"].folders[0]
    more = [f"data.batch_by={batch_by}", f"initialization={initialization}"]
    sentence = stopped(*arguments(ALBERT, folder, tmp_path / "run", *more))
    assert str(folder) in sentence
    assert "train" in sentence


def test_nothing_left_to_take_random_tokens_from(
    stopped: Refused, stores: dict[str, Store], tmp_path: Path
) -> None:
    folder = stores["empty"].folders[0]
    sentence = stopped(
        *arguments(SPANBERT, folder, tmp_path / "run", "masking.random_special_tokens=false")
    )
    assert str(folder) in sentence
