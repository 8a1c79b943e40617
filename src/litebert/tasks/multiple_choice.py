"""Multiple choice (`choice`), as in RACE: each option is read with the passage, the best one wins.

[CLS] passage [SEP] question and option [SEP]. An underscore in the question is where the option
goes; otherwise they are joined by a space. The passage loses its end, question and option their
beginning (Google's code keeps their last 128 tokens).

In a user's table the correct option may be told by its text, by a letter (A is the first) or by a
number from 0 or from 1; all rows tell it in the same way, so that all of them together decide which
way it is.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from litebert.base.batches import Batch
from litebert.base.errors import FormatError, InputError
from litebert.base.intervals import Interval, bootstrap_mean
from litebert.base.ragged import IntArray
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import cross_entropy_term
from litebert.reading.tables import quoted_list
from litebert.tasks.asked import fields_of, places, text_of
from litebert.tasks.features import NO_LABEL, Features, Sequences, encode_all
from litebert.tasks.metrics.classification import accuracy
from litebert.tasks.readers.column_mapping import ID, ColumnMapping, Role, role
from litebert.tasks.readers.json_content import kind_name, parse_json
from litebert.tasks.readers.rows import Row, Table
from litebert.tasks.readers.text_file import Say
from litebert.tasks.task import Form, Outputs, Prediction, Scores, Task, TaskSettings, Term
from litebert.text.tokenizer import Tokenizer

_OPTIONS = Role(
    ("options",), (("options",), ("choices",), ("endings",)),
    items=re.compile(r"(?:option|choice|ending)_?([a-j]|\d)"),  # not the s of options
)  # fmt: skip
_ANSWER = role("answer", "answer label answer_key answerkey correct correct_answer", "labelled")
_PASSAGE = role("passage", "context passage paragraph article", "never")
_QUESTION = role("question", "question query", "never")

_TEXT, _LETTER = "its text", "its letter"
_FROM_0, _FROM_1 = "its number from 0", "its number from 1"
_NO_WAY = "text, letter or number"


@dataclass(frozen=True)
class ChoiceExample:
    """A question about a passage with options to choose from."""

    id: str
    passage: str
    question: str
    options: tuple[str, ...]
    answer: int | None = None
    level: str | None = None  # RACE: middle or high
    where: str = field(default="", compare=False)


class ChoiceSettings(TaskSettings):
    """Settings of multiple choice."""

    options: int | None = Field(
        default=4, ge=2, description="options of a question; without, as many as it has"
    )
    question_length: int = Field(
        default=64, ge=1, description="tokens of a question with its option, at most"
    )


@dataclass(frozen=True)
class ChoicePrediction(Prediction):
    """The likeliest option, and how likely each one is."""

    choice: int
    probabilities: tuple[float, ...]

    def brief(self) -> dict[str, str]:
        option = self.inputs["options"][self.choice] if self.inputs else ""
        sure = f"{self.probabilities[self.choice]:.1%}"
        return {"choice": str(self.choice), "option": option, "probability": sure}


Examples = Sequence[ChoiceExample]
Predictions = Sequence[ChoicePrediction]


class MultipleChoice(Task[ChoiceSettings, ChoiceExample, ChoicePrediction]):
    """Choose one of several options."""

    kind = "choice"
    example_input = {  # noqa: RUF012
        "passage": "Ana packed an umbrella and a thick coat.",
        "question": "What did she expect?",
        "options": ["Rain and cold", "A hot day"],
    }
    settings_class = ChoiceSettings
    head = "multiple_choice"
    trivial_answer = "always the option at the most frequent place"

    @classmethod
    def roles(cls, columns: Sequence[str], given: ColumnMapping) -> tuple[Role, ...]:
        return _OPTIONS, ID, _PASSAGE, _QUESTION, _ANSWER

    @classmethod
    def from_table(cls, table: Table, *, labelled: bool, say: Say) -> list[ChoiceExample]:
        """A choice for each row; `say` is told how the correct option is told."""
        known = table.rows[0].columns.columns
        if "passage" not in known and "question" not in known:
            raise FormatError(
                f"{table.path}: neither a question nor a passage; there are "
                f"{quoted_list(table.columns)}; say which with `--column question=NAME`"
            )
        options = [_options(row) for row in table.rows]
        first = len(options[0])
        for row, one in zip(table.rows, options, strict=True):
            if len(one) != first:
                raise FormatError(f"{row.where}: {len(one)} options, the first row {first}")
        answers = _answers(table, options, labelled, say)
        return [
            ChoiceExample(
                id=row.id,
                passage=row.text("passage") if "passage" in known else "",
                question=row.text("question") if "question" in known else "",
                options=one,
                answer=answer,
                where=row.where,
            )
            for row, one, answer in zip(table.rows, options, answers, strict=True)
        ]

    @classmethod
    def settings_for(cls, examples: Examples, path: Path) -> ChoiceSettings:
        options = len(examples[0].options)
        return ChoiceSettings(name=cls.kind, kind=cls.kind, metrics=("accuracy",), options=options)

    def examples_of(self, inputs: Sequence[Any]) -> list[ChoiceExample]:
        """{"passage": ..., "question": ..., "options": [...]}; passage or question may lack."""
        examples = []
        for number, (value, where) in enumerate(zip(inputs, places(inputs), strict=True)):
            told = fields_of(value, ("options",), ("passage", "question"), where)
            if len(told) < 2:
                raise InputError(f"{where}: neither a question nor a passage")
            options = told.pop("options")
            if not isinstance(options, list | tuple) or len(options) < 2:
                raise InputError(f"{where}: options must be a list of two or more")
            texts = {name: text_of(told[name], f"{where}, {name}") for name in told}
            listed = tuple(
                text_of(option, f"{where}, option {n}").strip()
                for n, option in enumerate(options, 1)
            )
            example = ChoiceExample(
                str(number), texts.get("passage", ""), texts.get("question", ""), listed
            )
            first = examples[0] if examples else example
            problem = self.problem_of(example)
            if problem is None and len(listed) != len(first.options):
                problem = f"{len(listed)} options, the first input has {len(first.options)}"
            if problem is not None:
                raise InputError(f"{where}: {problem}")
            examples.append(example)
        return examples

    @classmethod
    def settings_of(cls, model: Model) -> ChoiceSettings | None:
        """A head that gives each option a number, however many there are."""
        if cls.head not in model.heads:
            return None
        return ChoiceSettings(
            name=cls.kind, kind=cls.kind, metrics=("accuracy",), options=None,
            max_length=model.config.longest_sequence,
        )  # fmt: skip

    @staticmethod
    def inputs_of(example: ChoiceExample) -> dict[str, Any]:
        texts = {"passage": example.passage, "question": example.question}
        return {**{name: text for name, text in texts.items() if text}, "options": example.options}

    @staticmethod
    def is_labelled(example: ChoiceExample) -> bool:
        return example.answer is not None

    @classmethod
    def answers_of(cls, example: ChoiceExample) -> tuple[str, ...]:
        return () if example.answer is None else (example.options[example.answer],)

    @classmethod
    def counted_of(cls, example: ChoiceExample) -> tuple[str, ...]:
        """The letter of the correct option."""
        return () if example.answer is None else (string.ascii_uppercase[example.answer],)

    def problem_of(self, example: ChoiceExample) -> str | None:
        there, wanted = len(example.options), self.settings.options
        fits = wanted in (None, there)
        return None if fits else f"{there} options; the model chooses among {wanted}"

    def form(self, examples: Examples) -> Form:
        return "options"

    def features(self, examples: Examples, tokenizer: Tokenizer) -> Features:
        """A sequence an option; those of a question lie side by side."""
        sequences, truncated = Sequences(tokenizer), 0
        distinct = list(dict.fromkeys(example.passage for example in examples))
        passages = dict(zip(distinct, encode_all(tokenizer, distinct), strict=True))
        asked = [
            ask(example.question, option) for example in examples for option in example.options
        ]
        options = iter(encode_all(tokenizer, asked))
        whole = self.settings.max_length - sequences.extra_of_pair
        longest = min(self.settings.question_length, whole)
        for number, example in enumerate(examples):
            passage, cut = passages[example.passage], False
            for place in range(len(example.options)):
                option = next(options)[-longest:]
                room = whole - len(option)
                cut |= len(passage) > room
                label = example.answer if place == 0 and example.answer is not None else NO_LABEL
                sequences.add(number, label, passage[: max(room, 0)], option)
            truncated += cut
        return Features(sequences.batch(group_size=len(examples[0].options)), truncated)

    def reads(self, batch: Batch) -> IntArray:
        return batch.starts

    def term(self, model: Model, state: State, inputs: Inputs, depth: int | None = None) -> Term:
        """Of the options of a question the first one carries the answer."""
        options = inputs.batch.group_size
        logits = model.head(self.head, depth)(state).view(-1, options)
        return cross_entropy_term(logits, inputs.labels.view(-1, options)[:, 0])

    def chance_loss(self, features: Features) -> float:
        return math.log(features.batch.group_size)

    def outputs(
        self, model: Model, state: State, inputs: Inputs, depth: int | None = None
    ) -> Outputs:
        """Probabilities of the options, one number a sequence."""
        options = inputs.batch.group_size
        logits = model.head(self.head, depth)(state).view(-1, options).float().softmax(-1)
        return list(logits.flatten().cpu().numpy()[:, None])

    def decode(
        self, examples: Examples, features: Features, outputs: Outputs
    ) -> list[ChoicePrediction]:
        table = np.concatenate(outputs).reshape(len(examples), -1)
        return [_prediction(example.id, row) for example, row in zip(examples, table, strict=True)]

    def merge(self, predictions: Predictions) -> ChoicePrediction:
        """The mean of the options' probabilities."""
        mean = np.mean([prediction.probabilities for prediction in predictions], 0)
        return _prediction(predictions[0].id, mean)

    def all_alike(self, predictions: Predictions) -> bool:
        return len({prediction.choice for prediction in predictions}) < 2

    def trivial(self, train: Examples, examples: Examples) -> list[ChoicePrediction]:
        answers = [example.answer for example in train if example.answer is not None]
        row = np.bincount(answers, minlength=self.settings.options or 0) / max(len(answers), 1)
        return [_prediction(example.id, row) for example in examples]

    def score(self, examples: Examples, predictions: Predictions) -> Scores:
        """Accuracy, for all and by level."""
        labels = np.array([example.answer for example in examples])
        predicted = np.array([prediction.choice for prediction in predictions])
        levels = np.array([example.level or "" for example in examples])
        scores = {"accuracy": accuracy(labels, predicted)}
        for level in sorted(set(levels.tolist()) - {""}):
            here = levels == level
            scores[level] = accuracy(labels[here], predicted[here])
        return scores

    def intervals(self, examples: Examples, predictions: Predictions) -> dict[str, Interval]:
        pairs = zip(examples, predictions, strict=True)
        return {"accuracy": bootstrap_mean([e.answer == p.choice for e, p in pairs])}


def ask(question: str, option: str) -> str:
    """A question with one of its options."""
    return question.replace("_", option) if "_" in question else f"{question} {option}"


def _prediction(id: str, row: np.ndarray) -> ChoicePrediction:
    return ChoicePrediction(id, int(row.argmax()), tuple(row.tolist()))


# ------------------------------------------------------------------------------- cells of a table

Options = tuple[str, ...]


def _options(row: Row) -> Options:
    if len(row.columns.columns["options"]) > 1:
        return row.texts("options")
    value, where = row.get("options"), row.place("options")
    if type(value) is str and value.lstrip().startswith("["):
        value = parse_json(value, where, numbers_as_text=True)
    if not isinstance(value, list):
        raise FormatError(f"{where} is not a list of options but {kind_name(value)}")
    if len(value) < 2:
        raise FormatError(f"{where}: {len(value)} options; there must be two or more")
    for number, option in enumerate(value, 1):
        if not isinstance(option, str) or not option.strip():
            raise FormatError(f"{where}: option {number} is empty or not text")
    return tuple(str(option).strip() for option in value)


def _answers(table: Table, options: list[Options], needed: bool, say: Say) -> list[int | None]:
    told = [row.label("answer", needed=needed) for row in table.rows]
    answered = [(answer, one) for answer, one in zip(told, options, strict=True) if answer]
    if not answered:
        return [None] * len(told)
    way = _way(table.path, answered)
    answers = []
    for row, answer, one in zip(table.rows, told, options, strict=True):
        place = _place(way, answer, one) if answer else None
        if answer and place is None:
            raise FormatError(
                f"{row.place('answer')} is {quoted_list((answer,))}, which is none of "
                f"the {len(one)} options by {way}"
            )
        answers.append(place)
    column = table.rows[0].columns["answer"]
    say(f"{table.path}: {column!r} tells the correct option by {way}")
    return answers


def _place(way: str, answer: str, options: Options) -> int | None:
    """The option that an answer means if it is told in this way."""
    answer, place = answer.strip(), -1
    if way == _TEXT:
        return options.index(answer) if options.count(answer) == 1 else None
    if way == _LETTER and len(answer) == 1:
        place = string.ascii_uppercase.find(answer.upper())
    if way in (_FROM_0, _FROM_1) and answer.isascii() and answer.isdigit() and len(answer) < 4:
        place = int(answer) - (way == _FROM_1)
    return place if 0 <= place < len(options) else None


def _way(path: str, rows: list[tuple[str, Options]]) -> str:
    """The one way that fits all rows; if none does, the one that fits most, for the message."""
    ways = (_TEXT, _LETTER, _FROM_0, _FROM_1)
    meant = {way: [_place(way, *row) for row in rows] for way in ways}
    fitting = [way for way, places in meant.items() if None not in places]
    if len({tuple(meant[way]) for way in fitting}) > 1:
        raise FormatError(
            f"{path}: the correct options could be told by {' or by '.join(fitting)}; "
            "write letters (A for the first) instead"
        )
    misses = {way: places.count(None) for way, places in meant.items()}
    best = min(misses, key=lambda way: misses[way])
    return best if misses[best] < len(rows) else _NO_WAY
