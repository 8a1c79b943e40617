"""Fine-tuning on two ranks: the model of one, and the same resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litebert.base.errors import LitebertError
from litebert.finetuning.batches import Batches
from litebert.finetuning.finetune import finetune
from litebert.model.model import Model
from litebert.tasks.features import Features
from litebert.tasks.registry import build_task
from litebert.text.tokenizer import load_tokenizer
from tests.tasks.small import TASKS, sentence, write_start
from tests.train.runs import Told, in_ranks

pytestmark = pytest.mark.slow

SETTINGS = (
    "steps=12", "batch_size=6", "dropout=0.0", "classifier_dropout=0.0", "max_length=32",
    "precision=fp32", "evaluations=3", "learning_rate=1e-3",
)  # fmt: skip


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    rows = [f"{sentence(n, 3 + n % 5)},{'no' if n % 2 else 'yes'}" for n in range(40)]
    (folder / "train.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return write_start(folder)


def _tune(pids: list[int], start: Path, out: Path, more: tuple[str, ...], options: Any) -> Told:
    try:
        done = finetune(
            start, "classify", out, train=start.parent / "train.csv", baseline=False,
            overrides=[*SETTINGS, *more], **options,
        )  # fmt: skip
    except LitebertError as error:
        return Told(error=f"{type(error).__name__}: {error}")
    assert done.report is not None
    return Told(said=tuple(f"{r.scores}" for r in done.report.seeds))


def tune(start: Path, out: Path, ranks: int, *more: str, **options: Any) -> list[Told]:
    return in_ranks(_tune, ranks, start, out, more, options)


def test_two_ranks_give_the_model_of_one(start: Path, tmp_path: Path) -> None:
    one, two = tune(start, tmp_path / "one", 1), tune(start, tmp_path / "two", 2)
    assert [told.error for told in (*one, *two)] == [None] * 3
    assert one[0].said == two[0].said == two[1].said
    models = [Model.load(tmp_path / name / "model") for name in ("one", "two")]
    for (name, ours), theirs in zip(
        models[0].named_parameters(), models[1].parameters(), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, msg=name)
    again = tune(start, tmp_path / "two", 2)
    assert [told.said for told in again] == [told.said for told in two]
    more = tune(start, tmp_path / "two", 2, seeds=2)
    assert [len(told.said) for told in more] == [2, 2]


def test_what_one_process_alone_can_do(start: Path, tmp_path: Path) -> None:
    told = tune(start, tmp_path / "out", 2, search="4")
    assert "--search" in (told[0].error or "")


def test_ranks_share_every_batch(start: Path) -> None:
    wanted, examples, _ = TASKS["classify"]
    features: Features = build_task(wanted).features(examples, load_tokenizer(start))
    whole, *parts = (
        Batches(features.batch, 5, 3, rank, size) for rank, size in ((0, 1), (0, 2), (1, 2))
    )
    for _ in range(4):
        batch = whole.next(0.0)[0]
        keys = np.concatenate([part.next(0.0)[0].keys for part in parts])
        assert sorted(keys.tolist()) == sorted(batch.keys.tolist())
