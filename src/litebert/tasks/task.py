"""The contract of a kind of task: everything that depends on the kind, in one class.

A kind owns its examples and how they are read from a user's table, its settings, features, loss,
predictions, metrics and checks. One runner fine-tunes, evaluates and predicts with any of them
(finetuning/, inference/), so a new kind is a class in a module of its own and a row in registry.py.
A method with a body here is what most kinds do; a kind inherits it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator
from torch import Tensor

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.base.intervals import Interval
from litebert.base.ragged import IntArray
from litebert.base.settings import Settings
from litebert.model.heads import EXITS
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import ACCURACY, Objective, Term
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.tasks.examples import E, ReadsExamples
from litebert.tasks.features import Features
from litebert.tasks.readers.text_file import Say
from litebert.text.tokenizer import Tokenizer

Output = NDArray[np.floating]  # of one sequence
Outputs = list[Output]
Scores = dict[str, float]
Form = Literal["text", "pair", "words", "passage", "options"]  # what an example asks about
EXIT_RULES = ("depth", "patience", "confidence")  # of kinds that say how likely labels are
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
    exits: bool = Field(default=False, description="there is a head at every depth")

    @field_validator("labels")
    @classmethod
    def _distinct(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        for label, count in Counter(labels).items():
            if count > 1:
                raise ValueError(f"label {label!r} is there {count} times")
        return labels


@dataclass(frozen=True)
class Prediction:
    """What is predicted for an example; a kind adds what it is."""

    id: str
    inputs: dict[str, Any] = field(default_factory=dict, compare=False, kw_only=True)  # asked
    depth: int | None = field(default=None, kw_only=True)  # layers, where they were chosen

    def to_json(self) -> dict[str, Any]:
        """Plain values by their names: the id, what was asked, what is predicted."""
        found = asdict(self)
        if self.depth is None:
            del found["depth"]
        return {"id": found.pop("id"), **found.pop("inputs"), **found}

    def brief(self) -> dict[str, str]:
        """What is predicted, for people."""
        own = {name: value for name, value in asdict(self).items() if name not in ("id", "inputs")}
        return {name: str(value) for name, value in own.items()}


S = TypeVar("S", bound=TaskSettings)
P = TypeVar("P", bound=Prediction)


class Task(Objective, ReadsExamples[E], Protocol[S, E, P]):
    """One kind of task. Pure: everything that an instance knows is in its settings.

    It is also the objective that fine-tuning trains (`count`, `reads`, `term`).
    """

    settings_class: ClassVar[type[TaskSettings]]
    noun: ClassVar[str] = "examples"  # what messages call them
    example_input: ClassVar[Any] = "The ferry was late, but the crossing was calm."  # to show
    exit_rules: ClassVar[tuple[str, ...]] = ()  # by which a sequence may exit early
    overflow_hint: ClassVar[str] = ""  # what else can be done about texts that are too long
    trivial_answer: ClassVar[str]  # what `trivial` predicts, in words
    fits_head: ClassVar[bool] = False  # on a frozen encoder: it has `head_rows` and `loss`
    contrasts: ClassVar[bool] = (
        False  # the vectors of examples with the same label can be drawn near
    )
    takes_several: ClassVar[bool] = False  # whether ||| may stand between the texts of an example
    takes_soft_labels: ClassVar[bool] = False  # from a teacher: it has `to_row` and `soft_term`
    has_word_columns: ClassVar[bool] = False  # whether predictions can be written as CoNLL's
    weight, counters, count_offset = 1.0, ACCURACY, 0
    name: str  # that of the settings, as metrics.jsonl names the loss
    settings: S
    head: str  # of the model

    def __init__(self, settings: S) -> None:
        self.settings, self.name = settings, settings.name

    @property
    def sentence_encoder(self) -> SentenceEncoderSettings | None:
        """How sentence-transformers makes vectors with a model of this task, if it should."""
        return None

    # ------------------------------------------- examples (how they are read is in examples.py)

    @classmethod
    def settings_for(cls, examples: Sequence[E], path: Path) -> S:
        """Settings for a user's training examples; `path` is named where they do not do."""
        ...

    def examples_of(self, inputs: Sequence[Any]) -> list[E]:
        """Examples out of what a Python program hands over, numbered; see asked.py."""
        ...

    @classmethod
    def settings_of(cls, model: Model) -> S | None:
        """Settings for a fine-tuned model that `transformers` saved; None if of another kind."""
        return None

    @staticmethod
    def inputs_of(example: E) -> dict[str, Any]:
        """What is asked: texts by the names of their columns."""
        known = ((name, getattr(example, name)) for name in vars(example))
        return {n: value for n, value in known if n not in ("id", "where") and type(value) is str}

    @classmethod
    def texts_of(cls, example: E) -> list[str]:
        """What is asked, a text each."""
        values = cls.inputs_of(example).values()
        return [value if isinstance(value, str) else " ".join(value) for value in values]

    @classmethod
    def key_of(cls, example: E) -> tuple[str, ...]:
        """What makes two examples the same to a reader: their texts, whatever case and spaces."""
        return tuple(" ".join(text.casefold().split()) for text in cls.texts_of(example))

    @staticmethod
    def is_labelled(example: E) -> bool:
        """Whether an example says what is to be predicted."""
        ...

    @staticmethod
    def labels_of(example: E) -> tuple[str, ...]:
        """The labels that must be known to the model; none where they are numbers or places."""
        return ()

    @classmethod
    def answers_of(cls, example: E) -> tuple[str, ...]:
        """What is to be predicted, for people; none where it is not known."""
        return cls.labels_of(example)

    @classmethod
    def counted_of(cls, example: E) -> tuple[str, ...]:
        """What a report counts: as a rule the answers."""
        return cls.answers_of(example)

    def problem_of(self, example: E) -> str | None:
        """Why an example cannot be read by a model of these settings, if it cannot."""
        return None

    def form(self, examples: Sequence[E]) -> Form:
        """What these examples are, as far as it decides how to fine-tune."""
        ...

    # ------------------------------------------------------------------------ features and loss

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads that are trained."""
        return (self.head, self.head + EXITS) if self.settings.exits else (self.head,)

    def configured(self, recipe: Mapping[str, Any], train: Sequence[E], say: Say) -> Self:
        """The task as a recipe wants it: the settings that both know; `say` is told of choices."""
        if recipe.get("exits") and not self.exit_rules:
            raise SettingsError(f"exits=true: tasks of kind {self.kind} have no heads to exit by")
        for setting, possible in (
            ("freeze", self.fits_head), ("probe_first", self.fits_head),
            ("contrastive", self.contrasts),
        ):  # fmt: skip
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
        """The tokens whose encodings the head reads; None for all."""
        return None

    def term(self, model: Model, state: State, inputs: Inputs, depth: int | None = None) -> Term:
        """The summed loss, and how many answers are correct; of the head at a `depth`."""
        ...

    def head_rows(self, model: Model, state: State, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """What the head's last layer reads, a row an answer, and the answers; if `fits_head`."""
        raise AssertionError(f"{self.kind} does not say that it has a linear head")

    def loss(self, outputs: Tensor, answers: Tensor) -> Term:
        """The summed loss of what the head's last layer says to such rows; if `fits_head`."""
        raise AssertionError(f"{self.kind} does not say that it has a linear head")

    def to_row(self, prediction: P) -> Sequence[float]:
        """A prediction as numbers; if `takes_soft_labels`."""
        raise AssertionError(f"{self.kind} does not say that it can be learned from a teacher")

    def soft_term(self, model: Model, state: State, taught: Tensor, temperature: float) -> Term:
        """The summed loss against a teacher's rows, one an answer; if `takes_soft_labels`."""
        raise AssertionError(f"{self.kind} does not say that it can be learned from a teacher")

    def chance_loss(self, features: Features) -> float | None:
        """The mean loss of one who knows only how often each answer occurs, where it is known."""
        return None

    # ------------------------------------------------------------------------------ predictions

    def outputs(
        self, model: Model, state: State, inputs: Inputs, depth: int | None = None
    ) -> Outputs:
        """What the model says of each sequence; by the head at a `depth`, where it has exits."""
        ...

    def agree(self, one: Output, other: Output) -> bool:
        """Whether two outputs of a sequence are the same answer, so that early exit may trust it.

        Of probabilities: the same label is the likeliest, in every row.
        """
        return bool((one.argmax(-1) == other.argmax(-1)).all())

    def confidence(self, output: Output) -> float:
        """How sure an output of a sequence is; of several rows, the least sure one."""
        return float(output.max(-1).min(initial=1.0))

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

    def to_word_columns(self, prediction: P) -> Sequence[tuple[str, ...]]:
        """A line a word, where `has_word_columns`."""
        raise SettingsError(f"{self.kind} has no columns of words; write .jsonl, .csv or .tsv")

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

    @contextmanager
    def own_units(self, model: Model) -> Iterator[None]:
        """While it lasts, a model that is being trained answers in the units of the labels."""
        yield

    def calibrated(self, scores: Scores) -> S:
        """The settings to keep beside a model that was given these scores on dev."""
        return self.settings
