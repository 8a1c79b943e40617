"""What tasks on a text or a pair of texts have in common: examples, features, windows, votes.

classification.py and regression.py add what is predicted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from pydantic import Field
from torch import Tensor

from litebert.base.batches import Batch
from litebert.base.errors import InputError, SettingsError
from litebert.base.intervals import Interval, Metric, bootstrap, bootstrap_difference
from litebert.base.ragged import IntArray
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.tasks.asked import BETWEEN_TEXTS, fields_of, pair_of, places, text_of
from litebert.tasks.features import Features, Ids, Sequences, encode_all
from litebert.tasks.readers.column_mapping import Role, role
from litebert.tasks.readers.rows import Row, Table
from litebert.tasks.readers.text_file import Say
from litebert.tasks.task import EXIT_RULES, Form, Outputs, P, Scores, Task, TaskSettings, Term
from litebert.text.tokenizer import Tokenizer

Pooling = Literal["first", "mean"]
Overflow = Literal["truncate", "stride"]
_NOTHING: Ids = np.zeros(0, np.int64)

TEXT = role("text", "text sentence review comment tweet content message")
LABEL = role("label", "label class category target sentiment score rating gold_label", "labelled")
PAIR = Role(
    ("text_a", "text_b"),
    (
        ("text_a", "text_b"), ("text1", "text2"), ("sentence1", "sentence2"),
        ("sentence_a", "sentence_b"), ("premise", "hypothesis"), ("question1", "question2"),
        ("question", "sentence"),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class TextExample:
    """One text or a pair of texts, with a label (classification) or a number (regression)."""

    id: str
    first: str
    second: str | None = None
    label: str | float | None = None
    where: str = field(default="", compare=False)


class TextSettings(TaskSettings):
    """Settings of tasks on texts."""

    overflow: Overflow = Field(
        default="truncate",
        description="texts beyond max_length: truncate them, or read them window by window",
    )
    stride: int = Field(default=64, ge=1, description="tokens from one window to the next")
    pooling: Pooling = Field(
        default="first", description="a text's vector: its [CLS] token, or the mean of its tokens"
    )
    bi_encoder: bool = Field(
        default=False, description="each text of a pair is read by itself, and their means compared"
    )
    pairs: bool | None = Field(
        default=None, description="numbers of pairs, or of lone texts; none: of what is asked"
    )
    label_mean: float = Field(
        default=0.0, description="of the numbers to learn: while it is trained, a head answers"
    )
    label_deviation: float = Field(
        default=1.0, gt=0, description="in deviations from this mean; a saved one in their units"
    )
    exit_tolerance: float = Field(
        default=0.0, ge=0, description="with exits: numbers so near each other are the same answer"
    )


Examples = Sequence[TextExample]
Floats = Sequence[float]


class TextTask(Task[TextSettings, TextExample, P]):
    """Predict something of a text or a pair of texts."""

    settings_class = TextSettings
    fits_head = takes_soft_labels = True
    overflow_hint = ", --overflow stride to read them in windows"
    known_metrics: ClassVar[dict[str, Metric]]
    label_type: ClassVar[DTypeLike] = np.int64
    no_label: ClassVar[float]
    exit_rules = EXIT_RULES

    def __init__(self, settings: TextSettings) -> None:
        super().__init__(settings)
        pooled = {"first": "classification", "mean": "mean_classification"}[settings.pooling]
        self.head = "bi_encoder_classification" if settings.bi_encoder else pooled

    @property
    def sentence_encoder(self) -> SentenceEncoderSettings | None:
        if self.head == "classification":  # of [CLS] through a pooler, which is not a module there
            return None
        return SentenceEncoderSettings(max_length=self.settings.max_length)

    @classmethod
    @abstractmethod
    def label_in(cls, row: Row, needed: bool) -> str | float | None:
        """The label of a table's row."""

    @abstractmethod
    def target_of(self, example: TextExample) -> float:
        """The label as the loss has it."""

    @abstractmethod
    def probabilities(self, logits: Tensor) -> Tensor:
        """What windows and models vote with, a row a sequence."""

    @abstractmethod
    def to_prediction(self, id: str, row: NDArray[np.floating]) -> P:
        """A prediction out of (the mean of) such rows."""

    @abstractmethod
    def to_row(self, prediction: P) -> Sequence[float]:
        """And back."""

    @abstractmethod
    def row_of_target(self, target: float) -> Sequence[float]:
        """Such a row of one who knows the label."""

    @abstractmethod
    def number_of(self, prediction: P) -> float:
        """What is predicted, as metrics compare it with the target."""

    def to_numbers(self, examples: Examples, predictions: Sequence[P]) -> tuple[Floats, Floats]:
        """Labels and predictions as metrics take them."""
        return list(map(self.target_of, examples)), list(map(self.number_of, predictions))

    @classmethod
    def from_table(cls, table: Table, *, labelled: bool, say: Say) -> list[TextExample]:
        examples = []
        for row in table.rows:
            paired = "text_b" in row.columns.columns
            first, second = ("text_a", row.text("text_b")) if paired else ("text", None)
            label = cls.label_in(row, labelled)
            examples.append(TextExample(row.id, row.text(first), second, label, row.where))
        return examples

    def examples_of(self, inputs: Sequence[Any]) -> list[TextExample]:
        """A text; or two of them, as a tuple or {"text_a": ..., "text_b": ...}."""
        examples = []
        for number, (value, where) in enumerate(zip(inputs, places(inputs), strict=True)):
            pair = pair_of(value, where)
            if pair is None and self.needs_pairs:
                raise InputError(
                    f"{where} is one text; the model compares two: give a pair (a, b), on the "
                    f'command line "a {BETWEEN_TEXTS} b"'
                )
            if pair is None and isinstance(value, Mapping):
                value = fields_of(value, ("text",), (), where)["text"]
            first, second = pair or (text_of(value, where), None)
            examples.append(TextExample(str(number), first, second))
        return examples

    @property
    def needs_pairs(self) -> bool:
        """Whether one text is not enough."""
        return self.settings.bi_encoder

    @staticmethod
    def inputs_of(example: TextExample) -> dict[str, Any]:
        if example.second is None:
            return {"text": example.first}
        return {"text_a": example.first, "text_b": example.second}

    @staticmethod
    def is_labelled(example: TextExample) -> bool:
        return example.label is not None

    def form(self, examples: Examples) -> Form:
        return "text" if examples[0].second is None else "pair"

    @classmethod
    def answers_of(cls, example: TextExample) -> tuple[str, ...]:
        return () if example.label is None else (f"{example.label}",)

    def configured(self, recipe: Mapping[str, Any], train: Examples, say: Say) -> Self:
        """As the recipe says; but a lone text has no other to be compared with."""
        if recipe.get("contrastive"):
            recipe = {**recipe, "pooling": "mean"}  # means are what is drawn together
        if recipe.get("bi_encoder"):
            if train[0].second is None:
                recipe = {**recipe, "bi_encoder": False, "pooling": "mean"}
            elif recipe.get("overflow") == "stride":
                raise SettingsError(
                    "--overflow stride: not with a bi-encoder, which truncates long texts; "
                    "--set bi_encoder=false"
                )
        return super().configured(recipe, train, say)

    def features(self, examples: Examples, tokenizer: Tokenizer) -> Features:
        """A sequence an example, or one a window; of a bi-encoder, one for each text."""
        if self.settings.bi_encoder:
            return self._separate(examples, tokenizer)
        sequences, truncated, windowed = Sequences(tokenizer), 0, 0
        firsts = encode_all(tokenizer, (example.first for example in examples))
        seconds = [_NOTHING] * len(examples)
        if any(example.second for example in examples):
            seconds = encode_all(tokenizer, (example.second or "" for example in examples))
        for number, (example, first, second) in enumerate(
            zip(examples, firsts, seconds, strict=True)
        ):
            paired = example.second is not None
            windows = self._windows(first, second if paired else None, sequences)
            for one, other in windows:
                sequences.add(number, self.target_of(example), one, other)
            kept = sum(len(ids) for ids in windows[0] if ids is not None)
            lost = kept < len(first) + len(second)
            truncated += lost if len(windows) == 1 else paired and len(windows[0][0]) < len(first)
            windowed += len(windows) > 1
        return Features(sequences.batch(self.label_type), truncated, windowed)

    def _separate(self, examples: Examples, tokenizer: Tokenizer) -> Features:
        """The two texts of an example side by side; the first one carries the label."""
        sequences, truncated = Sequences(tokenizer), set[int]()
        room = self.settings.max_length - sequences.extra
        texts = [text for example in examples for text in (example.first, example.second or "")]
        for place, ids in enumerate(encode_all(tokenizer, texts)):
            number, second = divmod(place, 2)
            label = self.no_label if second else self.target_of(examples[number])
            sequences.add(number, label, ids[:room])
            truncated |= {number} if len(ids) > room else set()
        return Features(sequences.batch(self.label_type, group_size=2), len(truncated))

    def _windows(
        self, first: Ids, second: Ids | None, sequences: Sequences
    ) -> list[tuple[Ids, Ids | None]]:
        """The text as it fits: whole, truncated, or in windows (of a pair, over the second)."""
        if second is None:
            room = self.settings.max_length - sequences.extra
            return [(window, None) for window in self._cut(first, room)]
        room = self.settings.max_length - sequences.extra_of_pair
        if self.settings.overflow == "stride" and len(first) + len(second) > room:
            first = first[: max(room // 2, room - len(second))]
            return [(first, window) for window in self._cut(second, room - len(first))]
        keep_first, keep_second = fit_pair(len(first), len(second), room)
        return [(first[:keep_first], second[:keep_second])]

    def _cut(self, ids: Ids, room: int) -> list[Ids]:
        if len(ids) <= room or self.settings.overflow == "truncate":
            return [ids[:room]]
        step = min(self.settings.stride, room)
        starts = range(0, len(ids) - room + step, step)
        return [ids[start : start + room] for start in starts]

    def reads(self, batch: Batch) -> IntArray | None:
        return batch.starts if self.head == "classification" else None

    def term(self, model: Model, state: State, inputs: Inputs, depth: int | None = None) -> Term:
        labels = inputs.labels[:: inputs.batch.group_size]
        return self.loss(self.logits(model, state, depth), labels)

    def head_rows(self, model: Model, state: State, inputs: Inputs) -> tuple[Tensor, Tensor]:
        return model.head(self.head).features(state), inputs.labels[:: inputs.batch.group_size]

    def soft_term(self, model: Model, state: State, taught: Tensor, temperature: float) -> Term:
        return Term(self.soft_loss(self.logits(model, state), taught, temperature))

    @abstractmethod
    def soft_loss(self, outputs: Tensor, taught: Tensor, temperature: float) -> Tensor:
        """How far outputs are from such rows of a teacher, summed."""

    def logits(self, model: Model, state: State, depth: int | None = None) -> Tensor:
        """What the head says of each example's sequence, or pair of them."""
        return model.head(self.head, depth)(state).float()

    def outputs(
        self, model: Model, state: State, inputs: Inputs, depth: int | None = None
    ) -> Outputs:
        rows = self.probabilities(self.logits(model, state, depth)).cpu().numpy()
        size = inputs.batch.group_size
        return list(rows if size == 1 else np.repeat(rows, size, axis=0))

    def decode(self, examples: Examples, features: Features, outputs: Outputs) -> list[P]:
        """The windows of a text vote with their probabilities."""
        means = np.stack(outputs)
        if len(outputs) > len(examples):
            numbers, sums = features.example_of, np.zeros((len(examples), means.shape[1]))
            np.add.at(sums, numbers, means)
            means = sums / np.bincount(numbers, minlength=len(examples))[:, None]
        return [
            self.to_prediction(example.id, row)
            for example, row in zip(examples, means, strict=True)
        ]

    def merge(self, predictions: Sequence[P]) -> P:
        """The mean of probabilities, or of numbers."""
        rows = [self.to_row(prediction) for prediction in predictions]
        return self.to_prediction(predictions[0].id, np.mean(rows, 0))

    def trivial(self, train: Examples, examples: Examples) -> list[P]:
        """The mean of the training labels' rows for all: the most frequent label, the mean."""
        row = np.mean([self.row_of_target(self.target_of(example)) for example in train], 0)
        return [self.to_prediction(example.id, row) for example in examples]

    def score(self, examples: Examples, predictions: Sequence[P]) -> Scores:
        both = self.to_numbers(examples, predictions)
        return {name: self.known_metrics[name](*both) for name in self.settings.metrics}

    def intervals(self, examples: Examples, predictions: Sequence[P]) -> dict[str, Interval]:
        both = self.to_numbers(examples, predictions)
        return {name: bootstrap(self.known_metrics[name], *both) for name in self.settings.metrics}

    @abstractmethod
    def plain_rows(self, train: Examples, examples: Examples) -> NDArray[np.floating]:
        """What TF-IDF and a linear model say of examples, in rows as `probabilities` has them."""

    def baseline(self, train: Examples, examples: Examples) -> list[P]:
        rows = self.plain_rows(train, examples)
        return [self.to_prediction(one.id, row) for one, row in zip(examples, rows, strict=True)]

    def difference(self, examples: Examples, ours: Sequence[P], others: Sequence[P]) -> Interval:
        labels, first = self.to_numbers(examples, ours)
        second = list(map(self.number_of, others))
        return bootstrap_difference(
            self.known_metrics[self.settings.metrics[0]], labels, first, second
        )


def both_texts(examples: Examples) -> list[tuple[str, str | None]]:
    """The text or the pair of each example."""
    return [(example.first, example.second) for example in examples]


def fit_pair(first: int, second: int, room: int) -> tuple[int, int]:
    """How much of two texts is kept: the longer one loses tokens until both fit, as Google does."""
    excess = first + second - room
    if excess <= 0:
        return first, second
    longer = min(abs(first - second), excess)  # taken from the longer one alone
    rest = excess - longer
    first, second = (first - longer, second) if first > second else (first, second - longer)
    # Then in turns; at a tie Google's loop takes from the second text.
    return first - rest // 2, second - (rest - rest // 2)
