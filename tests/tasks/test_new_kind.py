"""A new kind of task is a class and a row of the registry; nothing else knows of it.

Ranking: a query and candidate texts, of which one fits best.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import litebert
from litebert.base.batches import Batch
from litebert.base.intervals import Interval, bootstrap_mean
from litebert.base.ragged import IntArray
from litebert.inference.evaluate import evaluate_task
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import cross_entropy_term
from litebert.tasks.features import NO_LABEL, Features, Sequences, encode_all
from litebert.tasks.readers.column_mapping import ID, ColumnMapping, Role, role
from litebert.tasks.readers.rows import Table
from litebert.tasks.readers.text_file import Say
from litebert.tasks.registry import KINDS
from litebert.tasks.task import Form, Outputs, Prediction, Scores, Task, TaskSettings, Term
from litebert.text.tokenizer import Tokenizer
from tests.tasks.small import WORDS, write_start
from tests.test_cli import run


@dataclass(frozen=True)
class RankingExample:
    id: str
    query: str
    candidates: tuple[str, ...]
    best: int | None = None
    where: str = field(default="", compare=False)


class RankingSettings(TaskSettings):
    candidates: int = 2


@dataclass(frozen=True)
class RankingPrediction(Prediction):
    order: tuple[int, ...]
    probabilities: tuple[float, ...]


class Ranking(Task[RankingSettings, RankingExample, RankingPrediction]):
    kind = "rank"
    settings_class = RankingSettings
    head = "multiple_choice"
    trivial_answer = "the order as given"

    @classmethod
    def roles(cls, columns: Sequence[str], given: ColumnMapping) -> tuple[Role, ...]:
        candidates = Role(
            ("candidates",), (("candidates",),), items=re.compile(r"candidate_([a-j])")
        )
        return role("query", "query"), candidates, ID, role("best", "best", "labelled")

    @classmethod
    def from_table(cls, table: Table, *, labelled: bool, say: Say) -> list[RankingExample]:
        examples = []
        for row in table.rows:
            label = row.label("best", needed=labelled)
            best = None if label is None else ord(label) - ord("a")
            texts = row.texts("candidates")
            examples.append(RankingExample(row.id, row.text("query"), texts, best, row.where))
        return examples

    @classmethod
    def settings_for(cls, examples: Sequence[RankingExample], path: Path) -> RankingSettings:
        return RankingSettings(
            name=cls.kind, kind=cls.kind, metrics=("mean_reciprocal_rank",),
            candidates=len(examples[0].candidates),
        )  # fmt: skip

    @staticmethod
    def is_labelled(example: RankingExample) -> bool:
        return example.best is not None

    def form(self, examples: Sequence[RankingExample]) -> Form:
        return "options"

    def features(self, examples: Sequence[RankingExample], tokenizer: Tokenizer) -> Features:
        sequences = Sequences(tokenizer)
        room = (self.settings.max_length - sequences.extra_of_pair) // 2
        for number, example in enumerate(examples):
            query, *candidates = encode_all(tokenizer, [example.query, *example.candidates])
            for place, candidate in enumerate(candidates):
                best = NO_LABEL if place or example.best is None else example.best
                sequences.add(number, best, query[:room], candidate[:room])
        return Features(sequences.batch(group_size=self.settings.candidates))

    def reads(self, batch: Batch) -> IntArray:
        return batch.starts

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        logits = model.head(self.head)(state).view(-1, self.settings.candidates)
        return cross_entropy_term(logits, inputs.labels.view(-1, self.settings.candidates)[:, 0])

    def chance_loss(self, features: Features) -> float:
        return math.log(self.settings.candidates)

    def outputs(self, model: Model, state: State, inputs: Inputs) -> Outputs:
        logits = model.head(self.head)(state).view(-1, self.settings.candidates).float().softmax(-1)
        return list(logits.flatten().cpu().numpy()[:, None])

    def decode(
        self, examples: Sequence[RankingExample], features: Features, outputs: Outputs
    ) -> list[RankingPrediction]:
        rows = np.concatenate(outputs).reshape(len(examples), -1)
        return [_ranked(example.id, row) for example, row in zip(examples, rows, strict=True)]

    def merge(self, predictions: Sequence[RankingPrediction]) -> RankingPrediction:
        mean = np.mean([prediction.probabilities for prediction in predictions], 0)
        return _ranked(predictions[0].id, mean)

    def all_alike(self, predictions: Sequence[RankingPrediction]) -> bool:
        return len({prediction.order for prediction in predictions}) < 2

    def trivial(
        self, train: Sequence[RankingExample], examples: Sequence[RankingExample]
    ) -> list[RankingPrediction]:
        falling = -np.arange(self.settings.candidates)
        return [_ranked(example.id, falling) for example in examples]

    def score(
        self, examples: Sequence[RankingExample], predictions: Sequence[RankingPrediction]
    ) -> Scores:
        return {"mean_reciprocal_rank": float(np.mean(_reciprocal_ranks(examples, predictions)))}

    def intervals(
        self, examples: Sequence[RankingExample], predictions: Sequence[RankingPrediction]
    ) -> dict[str, Interval]:
        return {"mean_reciprocal_rank": bootstrap_mean(_reciprocal_ranks(examples, predictions))}


def _ranked(id: str, row: np.ndarray) -> RankingPrediction:
    return RankingPrediction(id, tuple(np.argsort(-row).tolist()), tuple(row.tolist()))


def _reciprocal_ranks(
    examples: Sequence[RankingExample], predictions: Sequence[RankingPrediction]
) -> list[float]:
    pairs = zip(examples, predictions, strict=True)
    return [1 / (1 + predicted.order.index(example.best or 0)) for example, predicted in pairs]


def table(path: Path, rows: int, *, labelled: bool = True) -> Path:
    """The candidate that begins with the query's word is the best."""
    lines = ["query,candidate_a,candidate_b" + ",best" * labelled]
    for number in range(rows):
        word, other = WORDS[number % 5], WORDS[5 + number % 7]
        texts = [f"{word} {other}", f"{other} {WORDS[12]}"][:: 1 if number % 2 else -1]
        best = ",a" if number % 2 else ",b"
        lines.append(",".join([word, *texts]) + best * labelled)
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_new_kind_is_fine_tuned_evaluated_and_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(KINDS, "rank", Ranking)
    start, out = write_start(tmp_path), tmp_path / "tuned"
    train, new = table(tmp_path / "train.csv", 40), tmp_path / "new.csv"
    overrides = ["steps=150", "learning_rate=3e-3", "evaluations=1", "classifier_dropout=0"]
    done = litebert.finetune(start, "rank", out, train=train, overrides=overrides)
    assert done.report is not None
    assert done.report.seeds[0].collapsed is None

    found = evaluate_task([out], train)
    assert found.scores["mean_reciprocal_rank"] > 0.95
    assert found.intervals["mean_reciprocal_rank"].low > 0.9
    predictions = litebert.predict([out, out / "model"], table(new, 6, labelled=False))
    assert [one.to_json()["order"][0] for one in predictions] == [1, 0, 1, 0, 1, 0]

    assert not run(monkeypatch, "predict", out, "--input", new)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["order"][0] for line in lines] == [1, 0, 1, 0, 1, 0]
