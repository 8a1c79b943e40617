"""Tagging words (`tag`): entities, parts of speech. A word's tag is asked of its first token."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from litebert.base.batches import Batch
from litebert.base.errors import FormatError, SettingsError
from litebert.base.intervals import Interval, bootstrap_sums
from litebert.base.ragged import IntArray
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import cross_entropy_term
from litebert.tasks.asked import places, split_words, words_of
from litebert.tasks.features import NO_LABEL, Features, Ids, Sequences, entropy
from litebert.tasks.metrics.classification import accuracy
from litebert.tasks.metrics.entities import (
    OUTSIDE,
    are_entities,
    entities,
    entity_counts,
    entity_scores,
    f1_of_counts,
)
from litebert.tasks.readers.column_mapping import ID, ColumnMapping, Role, role
from litebert.tasks.readers.conll import TAGS, WORDS, are_columns, read_conll
from litebert.tasks.readers.formats import format_of_name, format_of_text
from litebert.tasks.readers.rows import TEXT, Table
from litebert.tasks.readers.text_file import Say, read_lines
from litebert.tasks.source import DataSource
from litebert.tasks.tagged import TaggedExample, tagged
from litebert.tasks.task import (
    EXIT_RULES,
    Form,
    Outputs,
    Prediction,
    Scores,
    Task,
    TaskSettings,
    Term,
)
from litebert.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TagsPrediction(Prediction):
    """The likeliest tag of each word, and how likely each tag is, in the order of the labels.

    `words` and their places [start, end) in the text are told where a plain text was given.
    """

    tags: tuple[str, ...]
    probabilities: tuple[tuple[float, ...], ...]
    words: tuple[str, ...] = field(default=(), kw_only=True)
    offsets: tuple[tuple[int, int], ...] = field(default=(), kw_only=True)

    @property
    def entities(self) -> tuple[TextEntity, ...]:
        """The entities that the tags name, in a plain text."""
        found = entities(self.tags) if self.offsets else ()
        return tuple(
            TextEntity(one.type, self.offsets[one.start][0], self.offsets[one.end - 1][1])
            for one in found
        )

    def brief(self) -> dict[str, str]:
        words = zip(self.inputs.get("words", self.tags), self.tags, strict=True)
        return {"tags": " ".join(w if tag == OUTSIDE else f"{w}/{tag}" for w, tag in words)}

    def to_json(self) -> dict[str, Any]:
        """Plain values; places only of a plain text, whose words they are."""
        told = super().to_json()
        if not self.offsets:
            del told["offsets"]
            told["words"] = self.inputs.get("words", ())
        return told


@dataclass(frozen=True)
class TextEntity:
    """An entity: the characters [start, end) of a text."""

    type: str
    start: int
    end: int


Examples = Sequence[TaggedExample]
Predictions = Sequence[TagsPrediction]


class Tagging(Task[TaskSettings, TaggedExample, TagsPrediction]):
    """Tag each word of a sentence."""

    kind = "tag"
    settings_class = TaskSettings
    head = "token_classification"
    fits_head = True
    trivial_answer = "the most frequent tag for every word"
    exit_rules = EXIT_RULES
    has_word_columns = True

    def __init__(self, settings: TaskSettings) -> None:
        super().__init__(settings)
        self._number = {label: number for number, label in enumerate(settings.labels)}

    @classmethod
    def roles(cls, columns: Sequence[str], given: ColumnMapping) -> tuple[Role, ...]:
        return role("words", "words tokens"), ID, role("tags", "tags ner_tags labels", "labelled")

    @classmethod
    def from_table(cls, table: Table, *, labelled: bool, say: Say) -> list[TaggedExample]:
        return [tagged(row, labelled) for row in table.rows]

    @classmethod
    def open_table(cls, path: Path, given: ColumnMapping, *, labelled: bool, say: Say) -> Table:
        """A table; the words of plain text are found in it."""
        table = super().open_table(path, given, labelled=labelled, say=say)
        if not table.is_plain:
            return table
        say(f"{path}: read as a sentence a line, whose words end at spaces and punctuation")
        rows = [replace(row, values={"words": split_words(row.values[TEXT])}) for row in table.rows]
        return replace(table, columns=("words",), rows=rows)

    @classmethod
    def read_file(
        cls, path: Path, source: DataSource, *, labelled: bool, say: Say
    ) -> list[TaggedExample]:
        """A table, CoNLL's columns, or where no tags are needed a sentence a line."""
        format = format_of_name(path)
        if format is None or format in ("tsv", "text"):
            lines = read_lines(path)
            if format_of_text("\n".join(lines[:1])) == "json":
                format = "json"
            elif format == "tsv" and cls.known_names(lines[0].split("\t"), source.columns):
                format = "csv"  # a table with its header
            else:
                plain = not labelled and not are_columns(lines)
                format = "text" if plain else "columns"
        if source.repair or format != "columns":
            return super().read_file(path, source, labelled=labelled, say=say)
        return cls.from_conll(path, source.columns, labelled=labelled, say=say)

    @classmethod
    def from_conll(
        cls, path: Path, given: ColumnMapping, *, labelled: bool, say: Say
    ) -> list[TaggedExample]:
        """The sentences of a file in CoNLL's columns, whatever its name."""
        columns = _number(given, "words", WORDS), _number(given, "tags", TAGS)
        found = read_conll(path, needs_tags=labelled, columns=columns, say=say)
        return [TaggedExample(str(n), s.words, s.tags, s.where) for n, s in enumerate(found)]

    @classmethod
    def settings_for(cls, examples: Examples, path: Path) -> TaskSettings:
        """All tags, the one for nothing first; if they are of entities, these are scored."""
        found = {tag for example in examples for tag in example.tags or ()}
        labels = tuple(sorted(found, key=lambda tag: (tag != OUTSIDE, tag)))
        if len(labels) == 1:
            raise FormatError(
                f"{path}: every word has the tag {labels[0]!r}, so there is nothing to learn; if "
                "other columns hold words and tags, name them by their numbers from 0: --column "
                "words=1 --column tags=3"
            )
        metrics = ("entity_f1", "accuracy") if are_entities(labels) else ("accuracy",)
        return TaskSettings(name=cls.kind, kind=cls.kind, metrics=metrics, labels=labels)

    def examples_of(self, inputs: Sequence[Any]) -> list[TaggedExample]:
        """A plain text; or words: a tuple, {"words": [...]}, or a list inside a list of inputs."""
        asked = [words_of(*one) for one in zip(inputs, places(inputs), strict=True)]
        return [
            TaggedExample(str(number), words, offsets=offsets)
            for number, (words, offsets) in enumerate(asked)
        ]

    @classmethod
    def settings_of(cls, model: Model) -> TaskSettings | None:
        if cls.head not in model.heads:
            return None
        metrics = ("entity_f1", "accuracy") if are_entities(model.labels) else ("accuracy",)
        return TaskSettings(
            name=cls.kind, kind=cls.kind, metrics=metrics, labels=model.labels,
            max_length=model.config.longest_sequence,
        )  # fmt: skip

    @staticmethod
    def inputs_of(example: TaggedExample) -> dict[str, Any]:
        return {"words": example.words}

    @staticmethod
    def is_labelled(example: TaggedExample) -> bool:
        return example.tags is not None

    @staticmethod
    def labels_of(example: TaggedExample) -> tuple[str, ...]:
        return example.tags or ()

    def form(self, examples: Examples) -> Form:
        return "words"

    @classmethod
    def answers_of(cls, example: TaggedExample) -> tuple[str, ...]:
        return example.tags or ()

    def features(self, examples: Examples, tokenizer: Tokenizer) -> Features:
        """A sentence in one sequence, or in several that part it between words."""
        sequences, windowed = Sequences(tokenizer), 0
        places: list[IntArray] = []
        targets: list[int] = []
        room = self.settings.max_length - sequences.extra
        for number, example in enumerate(examples):
            ids, firsts = _encode(tokenizer, example.words)
            windows = list(_windows(len(ids), firsts, room))
            windowed += len(windows) > 1
            for begin, end in windows:
                here = (firsts >= begin) & (firsts < end)
                places.append(firsts[here] - begin + 1)  # after [CLS]
                targets += self._targets(example, np.flatnonzero(here))
                sequences.add(number, NO_LABEL, ids[begin:end])
        batch = sequences.batch()
        starts = np.repeat(batch.starts, [len(place) for place in places])
        positions = np.concatenate([np.zeros(0, np.int64), *places]) + starts
        batch = replace(batch, positions=positions, targets=np.array(targets, np.int32))
        return Features(batch, windowed=windowed)

    def _targets(self, example: TaggedExample, words: IntArray) -> list[int]:
        if example.tags is None:
            return [NO_LABEL] * len(words)
        return [self._number.get(example.tags[word], NO_LABEL) for word in words]

    def count(self, batch: Batch) -> int:
        return int((batch.targets >= 0).sum())

    def reads(self, batch: Batch) -> IntArray:
        return np.unique(batch.positions)

    def term(self, model: Model, state: State, inputs: Inputs, depth: int | None = None) -> Term:
        return self.loss(model.head(self.head, depth)(state)[inputs.positions], inputs.targets)

    def head_rows(self, model: Model, state: State, inputs: Inputs) -> tuple[Tensor, Tensor]:
        return model.head(self.head).features(state)[inputs.positions], inputs.targets

    def loss(self, outputs: Tensor, answers: Tensor) -> Term:
        return cross_entropy_term(outputs, answers, self.settings.label_weights)

    def chance_loss(self, features: Features) -> float:
        return entropy(features.batch.targets, self.settings.label_weights)

    def outputs(
        self, model: Model, state: State, inputs: Inputs, depth: int | None = None
    ) -> Outputs:
        """Probabilities of the tags, a row for each word of the sequence."""
        logits = model.head(self.head, depth)(state)[inputs.positions].float().softmax(-1)
        sequence = inputs.batch.sequence_ids[inputs.batch.positions]
        counts = np.bincount(sequence, minlength=len(inputs.batch))
        return np.split(logits.cpu().numpy(), np.cumsum(counts)[:-1])

    def decode(
        self, examples: Examples, features: Features, outputs: Outputs
    ) -> list[TagsPrediction]:
        rows: list[list[np.ndarray]] = [[] for _ in examples]
        for number, output in zip(features.example_of.tolist(), outputs, strict=True):
            rows[number] += list(output)
        return [
            self._with_words(example, self._prediction(example.id, np.array(found)))
            for example, found in zip(examples, rows, strict=True)
        ]

    @staticmethod
    def _with_words(example: TaggedExample, prediction: TagsPrediction) -> TagsPrediction:
        if example.offsets is None:
            return prediction
        return replace(prediction, words=example.words, offsets=example.offsets)

    def _prediction(self, id: str, rows: np.ndarray) -> TagsPrediction:
        tags = tuple(self.settings.labels[best] for best in rows.argmax(-1))
        return TagsPrediction(id, tags, tuple(map(tuple, rows.tolist())))

    def merge(self, predictions: Predictions) -> TagsPrediction:
        """The mean of the tags' probabilities."""
        mean = np.mean([prediction.probabilities for prediction in predictions], 0)
        first = predictions[0]
        merged = self._prediction(first.id, mean)
        return replace(merged, words=first.words, offsets=first.offsets)

    def to_word_columns(self, prediction: TagsPrediction) -> list[tuple[str, ...]]:
        return list(zip(prediction.inputs["words"], prediction.tags, strict=True))

    def all_alike(self, predictions: Predictions) -> bool:
        return len({tag for prediction in predictions for tag in prediction.tags}) < 2

    def trivial(self, train: Examples, examples: Examples) -> list[TagsPrediction]:
        counts = Counter(tag for example in train for tag in example.tags or ())
        row = np.array([counts[label] for label in self.settings.labels]) / max(counts.total(), 1)
        return [
            self._prediction(example.id, np.tile(row, (len(example.words), 1)))
            for example in examples
        ]

    def score(self, examples: Examples, predictions: Predictions) -> Scores:
        """Entity F1, precision and recall, and the fraction of tags that are correct."""
        labels, predicted = _tags(examples, predictions)
        correct = accuracy(
            [t for row in labels for t in row], [t for row in predicted for t in row]
        )
        if "entity_f1" not in self.settings.metrics:
            return {"accuracy": correct}
        overall = entity_scores(labels, predicted).overall
        return {
            "entity_f1": overall.f1, "precision": overall.precision, "recall": overall.recall,
            "accuracy": correct,
        }  # fmt: skip

    def intervals(self, examples: Examples, predictions: Predictions) -> dict[str, Interval]:
        """Over sentences."""
        labels, predicted = _tags(examples, predictions)
        rows = [
            (sum(map(str.__eq__, true, found)), len(true))
            for true, found in zip(labels, predicted, strict=True)
        ]
        found = {"accuracy": bootstrap_sums(rows, lambda sums: sums[..., 0] / sums[..., 1])}
        if "entity_f1" in self.settings.metrics:
            found["entity_f1"] = bootstrap_sums(entity_counts(labels, predicted), f1_of_counts)
        return found


def _tags(
    examples: Examples, predictions: Predictions
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    return [example.tags or () for example in examples], [one.tags for one in predictions]


def _encode(tokenizer: Tokenizer, words: Sequence[str]) -> tuple[Ids, IntArray]:
    """The ids of a sentence, and the first token of each word.

    The sentence is encoded as a whole, as in pretraining. A word that leaves no token of its own
    (it holds nothing but what normalization drops) shares the token that comes next.
    """
    if not words:
        raise SettingsError("a sentence without words cannot be tagged")
    encoding = tokenizer.encode_with_offsets(" ".join(words))
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    begins = np.array([start for start, _ in encoding.offsets], np.int64)
    ids = np.array(encoding.ids, np.int64)
    if not len(ids):
        return np.array([tokenizer.special.unk]), np.zeros(len(words), np.int64)
    return ids, np.minimum(np.searchsorted(begins, starts), len(ids) - 1)


def _windows(tokens: int, firsts: IntArray, room: int) -> Iterator[tuple[int, int]]:
    """Runs of whole words that fit; a word longer than the room loses its tail."""
    begin = 0
    while begin < tokens:
        end = min(begin + room, tokens)
        later = firsts[firsts > begin]
        fitting = later[later <= end]
        if end == tokens:
            following = tokens
        elif len(fitting):
            following = end = int(fitting[-1])
        else:
            following = int(later[0]) if len(later) else tokens
        yield begin, end
        begin = following


def _number(given: ColumnMapping, role: str, default: int) -> int:
    told = given[role]
    if told and not re.fullmatch(r"-?\d{1,4}", told):
        raise SettingsError(
            f"--column {role}={told}: columns of words have no names; give a number from 0"
        )
    return int(told) if told else default
