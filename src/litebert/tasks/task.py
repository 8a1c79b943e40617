"""The contract of a kind of task: everything that depends on the kind, in one class.

A kind owns its examples and how they are read from a user's table, its settings, features, loss,
predictions, metrics and checks. One runner fine-tunes, evaluates and predicts with any of them
(finetuning/, inference/), so a new kind is a class in a module of its own and a row in registry.py.
A method with a body here is what most kinds do; a kind inherits it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.base.intervals import Interval
from litebert.base.ragged import IntArray
from litebert.base.settings import Settings
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import ACCURACY, Objective, Term
from litebert.tasks.features import Features
from litebert.tasks.readers.column_mapping import ColumnMapping, Role, map_columns
from litebert.tasks.readers.rows import Table, map_rows, read_table
from litebert.tasks.readers.text_file import Say
from litebert.tasks.source import DataSource
from litebert.text.tokenizer import Tokenizer

Outputs = list[NDArray[np.floating]]  # one array a sequence
Scores = dict[str, float]
Form = Literal["text", "pair", "words", "passage", "options"]  # what an example asks about
SHOWN = 10  # weights of labels
TASK_KEY = "litebert_task"  # where a model folder's config.json keeps the settings


class TaskSettings(Settings):
    """What a fine-tuned model folder remembers of its task; a kind adds fields of its own.

    Fine-tuning sets those fields that are also in its recipe (max_length, pooling, …).
    """

    name: str = Field(description="the task's name: sst-2, squad-2.0, classify, ...")
    kind: str = Field(description="a row of the registry of kinds")
    metrics: tuple[str, ...] = Field(description="the first one chooses the best model")
    labels: tuple[str, ...] = ()
    label_weights: tuple[float, ...] = Field(
        default=(), description="of the labels in the loss; none: all alike"
    )
    max_length: int = Field(default=128, ge=8, description="tokens of a sequence, at most")


@dataclass(frozen=True)
class Prediction:
    """What is predicted for an example; a kind adds what it is."""

    id: str

    def to_json(self) -> dict[str, Any]:
        """Plain values: the fields, by their names."""
        return asdict(self)


class AnyExample(Protocol):
    """What examples of all kinds have; they are frozen dataclasses of plain values."""

    @property
    def id(self) -> str: ...

    @property
    def where(self) -> str:
        """File and line, for messages; "" where it is not known."""
        ...


S = TypeVar("S", bound=TaskSettings)
E = TypeVar("E", bound=AnyExample)
P = TypeVar("P", bound=Prediction)


class Task(Objective, Protocol[S, E, P]):
    """One kind of task. Pure: everything that an instance knows is in its settings.

    It is also the objective that fine-tuning trains (`count`, `reads`, `term`).
    """

    kind: ClassVar[str]  # its name on the command line and in the registry
    settings_class: ClassVar[type[TaskSettings]]
    noun: ClassVar[str] = "examples"  # what messages call them
    overflow_hint: ClassVar[str] = ""  # what else can be done about texts that are too long
    trivial_answer: ClassVar[str]  # what `trivial` predicts, in words
    fits_head: ClassVar[bool] = False  # on a frozen encoder: it has `head_rows` and `loss`
    contrasts: ClassVar[bool] = (
        False  # the vectors of examples with the same label can be drawn near
    )
    weight, counters, count_offset = 1.0, ACCURACY, 0
    name: str  # that of the settings, as metrics.jsonl names the loss
    settings: S
    head: str  # of the model

    def __init__(self, settings: S) -> None:
        self.settings, self.name = settings, settings.name

    # -------------------------------------------------------------- examples, from users' files

    @classmethod
    def roles(cls, columns: Sequence[str], given: ColumnMapping) -> tuple[Role, ...]:
        """What the columns of a table may be; `given` by the user, perhaps a few only."""
        ...

    @classmethod
    def from_table(cls, table: Table, *, labelled: bool, say: Say) -> list[E]:
        """An example for each row; `labelled` ones must have their labels."""
        ...

    @classmethod
    def read_table(
        cls, path: Path, given: ColumnMapping, *, labelled: bool, say: Say
    ) -> tuple[list[E], ColumnMapping]:
        """The examples of a .csv, .tsv, .jsonl or .parquet file, and the columns they came from."""
        table = read_table(path)
        roles = cls.roles(table.columns, given)
        columns = map_columns(table.path, cls.kind, table.columns, roles, given, labelled=labelled)
        table = map_rows(table, columns, say, id_told="id" in given.columns)
        return cls.from_table(table, labelled=labelled, say=say), table.rows[0].columns

    @classmethod
    def read_file(cls, path: Path, source: DataSource, *, labelled: bool, say: Say) -> list[E]:
        """The examples of a user's file, in any format that the kind reads."""
        if source.repair:
            raise SettingsError(f"--repair: {path} is not a SQuAD file, which it is for")
        examples, columns = cls.read_table(path, source.columns, labelled=labelled, say=say)
        if guessed := columns.without(*source.columns.columns).shown():
            listed = ", ".join(f"{role} = {column!r}" for role, column in guessed.items())
            say(f"{path}: columns guessed by their names: {listed} (--column ROLE=NAME to change)")
        return examples

    @classmethod
    def settings_for(cls, examples: Sequence[E], path: Path) -> S:
        """Settings for a user's training examples; `path` is named where they do not do."""
        ...

    @staticmethod
    def is_labelled(example: E) -> bool:
        """Whether an example says what is to be predicted."""
        ...

    @staticmethod
    def labels_of(example: E) -> tuple[str, ...]:
        """The labels that must be known to the model; none where they are numbers or places."""
        return ()

    def problem_of(self, example: E) -> str | None:
        """Why an example cannot be read by a model of these settings, if it cannot."""
        return None

    def form(self, examples: Sequence[E]) -> Form:
        """What these examples are, as far as it decides how to fine-tune."""
        ...

    # ------------------------------------------------------------------------ features and loss

    def configured(self, recipe: Mapping[str, Any], train: Sequence[E], say: Say) -> Self:
        """The task as a recipe wants it: the settings that both know; `say` is told of choices."""
        for setting, possible in (("freeze", self.fits_head), ("contrastive", self.contrasts)):
            if recipe.get(setting) and not possible:
                raise SettingsError(f"{setting} = true: not for tasks of the kind {self.kind}")
        known = {name: recipe[name] for name in recipe if name in type(self.settings).model_fields}
        if recipe.get("class_weights") == "balanced":
            known["label_weights"] = self._balanced_weights(train, say)
        return type(self)(
            type(self.settings).build({**self.settings.model_dump(), **known}, "task")
        )

    def _balanced_weights(self, train: Sequence[E], say: Say) -> tuple[float, ...]:
        """Every label weighs the same in all, and an answer 1 in the mean."""
        counts = Counter(label for example in train for label in self.labels_of(example))
        if not counts:
            raise SettingsError(f"class_weights = balanced: the kind {self.kind} has no labels")
        weights = {name: counts.total() / (len(counts) * count) for name, count in counts.items()}
        shown = ", ".join(f"{name} {weight:.2f}" for name, weight in list(weights.items())[:SHOWN])
        more = f" and {len(weights) - SHOWN} more" if len(weights) > SHOWN else ""
        say(f"class weights, so that all labels count alike: {shown}{more}")
        return tuple(weights.get(label, 1.0) for label in self.settings.labels)

    def features(self, examples: Sequence[E], tokenizer: Tokenizer) -> Features:
        """The sequences of some examples."""
        ...

    def count(self, batch: Batch) -> int:
        """How many answers a batch asks for."""
        return int((batch.labels >= 0).sum())

    def reads(self, batch: Batch) -> IntArray | None:
        """The tokens whose encodings the head looks at; None for all."""
        return None

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """The summed loss, and how many answers are correct."""
        ...

    def head_rows(self, model: Model, state: State, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """What the head's last layer reads, a row an answer, and the answers; if `fits_head`."""
        raise AssertionError(f"{self.kind} does not say that it has a linear head")

    def loss(self, outputs: Tensor, answers: Tensor) -> Term:
        """The summed loss of what the head's last layer says to such rows; if `fits_head`."""
        raise AssertionError(f"{self.kind} does not say that it has a linear head")

    def chance_loss(self, features: Features) -> float | None:
        """The mean loss of one who knows only how often each answer occurs, where it is known."""
        return None

    # ------------------------------------------------------------------------------ predictions

    def outputs(self, model: Model, state: State, inputs: Inputs) -> Outputs:
        """What the model says of each sequence."""
        ...

    def decode(self, examples: Sequence[E], features: Features, outputs: Outputs) -> list[P]:
        """One prediction for each example."""
        ...

    def merge(self, predictions: Sequence[P]) -> P:
        """One prediction out of several models' for the same example."""
        ...

    def together_with(self, others: Sequence[Self]) -> Self:
        """The task that merges the predictions of several models, this one's among them."""
        return self

    def all_alike(self, predictions: Sequence[P]) -> bool:
        """Whether every example was given the same answer, so that nothing was learned."""
        ...

    def trivial(self, train: Sequence[E], examples: Sequence[E]) -> list[P]:
        """Predictions that take no encoder: what a model must be better than to have learned."""
        ...

    def baseline(self, train: Sequence[E], examples: Sequence[E]) -> list[P] | None:
        """Predictions of a plain model without an encoder, trained on `train`; if there is one."""
        return None

    def difference(self, examples: Sequence[E], ours: Sequence[P], others: Sequence[P]) -> Interval:
        """By how much the first predictions are better (first metric); of kinds with a baseline."""
        raise AssertionError(f"{self.kind} has no baseline")

    def is_better(self, scores: Scores, trivial: Scores) -> bool:
        """Whether scores are above those of the trivial predictions."""
        metric = self.settings.metrics[0]
        return scores[metric] > trivial[metric]

    def write_submission(self, path: Path, predictions: Sequence[P]) -> None:
        """Predictions in the official format of the kind, where it has one."""
        raise SettingsError(f"--submission: {self.settings.name} has no official format")

    # ----------------------------------------------------------------------------------- scores

    def score(self, examples: Sequence[E], predictions: Sequence[P]) -> Scores:
        """The metrics of the settings, and others beside them."""
        ...

    def intervals(self, examples: Sequence[E], predictions: Sequence[P]) -> dict[str, Interval]:
        """What other examples might have given, for the scores that choose a model."""
        ...

    def details(self, examples: Sequence[E], predictions: Sequence[P]) -> dict[str, Any]:
        """More than scores, as plain values for a report: tables of labels."""
        return {}

    def calibrated(self, scores: Scores) -> S:
        """The settings to keep beside a model that was given these scores on dev."""
        return self.settings
