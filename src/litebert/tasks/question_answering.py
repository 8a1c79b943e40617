"""Question answering (`qa`): answers as spans of a passage, as in SQuAD 1.1 and 2.0.

[CLS] question [SEP] window of the passage [SEP]. A long passage is read in windows, `stride` tokens
from one to the next; a window without the answer points at [CLS]. Answers are cut from the original
passage by the places of their tokens, never put together from tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from litebert.base.batches import Batch
from litebert.base.intervals import Interval, bootstrap_mean
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.asked import fields_of, places, text_of
from litebert.tasks.features import Features, Sequences, encode_all, entropy
from litebert.tasks.metrics.squad import score_questions, squad_v1, squad_v2
from litebert.tasks.questions import (
    ROLES,
    QuestionExample,
    gold_answers,
    is_squad,
    nearest_sentence,
    questions_of,
    read_squad,
    write_predictions,
)
from litebert.tasks.readers.column_mapping import ColumnMapping, Role
from litebert.tasks.readers.rows import Table
from litebert.tasks.readers.text_file import Say
from litebert.tasks.source import DataSource
from litebert.tasks.spans import (
    beam_spans,
    conditional_term,
    most_context,
    span_of,
    span_term,
    spans_from_beams,
    spans_from_scores,
)
from litebert.tasks.task import Form, Outputs, Prediction, Scores, Task, TaskSettings, Term
from litebert.text.tokenizer import Encoding, Tokenizer

CANDIDATES = 20  # that a question keeps
ROUNDING = 0.01  # of odds, between precisions
AT_CLS = (0, 0, 1)  # start, end, and that there is no answer in this window


class QuestionSettings(TaskSettings):
    """Settings of question answering."""

    max_length: int = Field(default=384, ge=8, description="tokens of a sequence, at most")
    stride: int = Field(default=128, ge=1, description="tokens from one window to the next")
    question_length: int = Field(default=64, ge=1, description="tokens of a question, at most")
    answer_length: int = Field(default=30, ge=1, description="tokens of an answer, at most")
    has_unanswerable: bool = Field(default=False, description="questions may have no answer")
    threshold: float | None = Field(
        default=None, description="no answer is given where its odds are above this"
    )
    conditional_head: bool = Field(
        default=False, description="SQuAD 2.0's head of the paper, which stays ours"
    )


@dataclass(frozen=True)
class AnswerCandidate:
    """A part of a passage that may be the answer; probabilities are among the candidates."""

    text: str
    start: int
    score: float
    probability: float


@dataclass(frozen=True)
class AnswerPrediction(Prediction):
    """The best answer, or "" where none is the likelier thing; what else it could be."""

    text: str
    start: int
    null_odds: float  # how much likelier no answer is than the best candidate
    candidates: tuple[AnswerCandidate, ...]

    @property
    def end(self) -> int:
        """The answer is passage[start:end]."""
        return self.start + len(self.text)

    @property
    def probability(self) -> float:
        """Of the answer among the candidates; 0 where none is given."""
        return self.candidates[0].probability if self.text else 0.0

    def brief(self) -> dict[str, str]:
        sure = f"{self.candidates[0].probability:.1%}" if self.text and self.candidates else ""
        return {"answer": self.text or "(none)", "probability": sure}


Examples = Sequence[QuestionExample]
Predictions = Sequence[AnswerPrediction]


class QuestionAnswering(Task[QuestionSettings, QuestionExample, AnswerPrediction]):
    """Find the answer to a question in a passage, or say that it is not there."""

    kind = "qa"
    example_input = {  # noqa: RUF012
        "question": "When did the bridge open?",
        "passage": "The masons of the town built the bridge. It opened in 1874, two years late.",
    }
    settings_class = QuestionSettings
    noun = "questions"
    takes_several = True
    trivial_answer = "the sentence that shares most words with the question, or no answer"

    def __init__(self, settings: QuestionSettings) -> None:
        super().__init__(settings)
        self.head = "conditional_span" if settings.conditional_head else "span"

    @classmethod
    def roles(cls, columns: Sequence[str], given: ColumnMapping) -> tuple[Role, ...]:
        return ROLES

    @classmethod
    def from_table(cls, table: Table, *, labelled: bool, say: Say) -> list[QuestionExample]:
        return questions_of(table, needs_answers=labelled, say=say)

    @classmethod
    def read_file(
        cls, path: Path, source: DataSource, *, labelled: bool, say: Say
    ) -> list[QuestionExample]:
        """A file like SQuAD's, or a table."""
        if ".json" in path.suffixes and is_squad(path):
            return read_squad(path, needs_answers=labelled, repair=source.repair, say=say)
        return super().read_file(path, source, labelled=labelled, say=say)

    @classmethod
    def settings_for(cls, examples: Examples, path: Path) -> QuestionSettings:
        unanswerable = any(example.impossible for example in examples)
        return QuestionSettings(
            name=cls.kind, kind=cls.kind, has_unanswerable=unanswerable,
            metrics=("best_f1", "best_exact") if unanswerable else ("f1", "exact"),
        )  # fmt: skip

    def examples_of(self, inputs: Sequence[Any]) -> list[QuestionExample]:
        """{"question": ..., "passage": ...}, or both as a tuple."""
        examples, names = [], ("question", "passage")
        for number, (value, where) in enumerate(zip(inputs, places(inputs), strict=True)):
            if isinstance(value, tuple) and len(value) == len(names):
                value = dict(zip(names, value, strict=True))
            told = fields_of(value, names, (), where)
            question, passage = (text_of(told[name], f"{where}, {name}") for name in told)
            examples.append(QuestionExample(str(number), question, passage))
        return examples

    @classmethod
    def settings_of(cls, model: Model) -> QuestionSettings | None:
        """Whether questions may have no answer is not told, so that one is always given."""
        if "span" not in model.heads:
            return None
        return QuestionSettings(
            name=cls.kind, kind=cls.kind, metrics=("f1", "exact"),
            max_length=min(384, model.config.longest_sequence),
        )  # fmt: skip

    @staticmethod
    def inputs_of(example: QuestionExample) -> dict[str, Any]:
        return {"question": example.question, "passage": example.passage}

    @staticmethod
    def is_labelled(example: QuestionExample) -> bool:
        return bool(example.answers or example.impossible)

    @classmethod
    def answers_of(cls, example: QuestionExample) -> tuple[str, ...]:
        return tuple(sorted({answer.text for answer in example.answers}))

    @classmethod
    def counted_of(cls, example: QuestionExample) -> tuple[str, ...]:
        return ("an answer" if example.answers else "no answer",)

    def configured(self, recipe: Mapping[str, Any], train: Examples, say: Say) -> Self:
        """The paper's head is for questions that may have no answer."""
        conditional = recipe.get("conditional_head", False) and self.settings.has_unanswerable
        return super().configured({**recipe, "conditional_head": conditional}, train, say)

    def form(self, examples: Examples) -> Form:
        return "passage"

    def features(self, examples: Examples, tokenizer: Tokenizer) -> Features:
        """The windows of each question; where a token stands in its passage, and which own it."""
        sequences, windowed, truncated = Sequences(tokenizer), 0, 0
        encoded: dict[str, Encoding] = {}
        questions = encode_all(tokenizer, (example.question for example in examples))
        offsets: list[NDArray[np.int32]] = []
        owned: list[NDArray[np.bool_]] = []
        room = self.settings.max_length - sequences.extra_of_pair
        longest = min(self.settings.question_length, room // 2)
        for number, (example, question) in enumerate(zip(examples, questions, strict=True)):
            passage = encoded.get(example.passage)
            if passage is None:
                passage = encoded[example.passage] = tokenizer.encode_with_offsets(example.passage)
            ids = np.array(passage.ids, np.int64)
            places = np.array(passage.offsets, np.int32).reshape(-1, 2)
            truncated += len(question) > longest
            question = question[:longest]
            windows = self._windows(len(ids), room - len(question))
            windowed += len(windows) > 1
            before = sequences.extra_of_pair - 1 + len(question)
            for place, (begin, end) in enumerate(windows):
                label = _target(example, places, begin, end, before)
                sequences.add(number, label, question, ids[begin:end])
                offsets.append(_in_sequence(places[begin:end], before))
                owned.append(_in_sequence(most_context(windows, place), before))
        extras = {"offsets": np.concatenate(offsets), "owned": np.concatenate(owned)}
        return Features(sequences.batch(), truncated, windowed, extras)

    def _windows(self, tokens: int, room: int) -> list[tuple[int, int]]:
        step = min(self.settings.stride, max(room // 2, 1))  # no answer falls between two windows
        starts = range(0, max(tokens - room, 0) + step, step)
        return [(start, min(start + room, tokens)) for start in starts]

    def count(self, batch: Batch) -> int:
        return len(batch)

    def chance_loss(self, features: Features) -> float | None:
        """Knowing only how often a window holds no answer, and where none is to be found else."""
        if self.settings.conditional_head:
            return None  # of two losses of which one knows the start
        batch, missing = features.batch, features.batch.labels[:, 2]
        texts = np.add.reduceat(batch.is_text.astype(np.int64), batch.starts)
        return entropy(missing) + float(((1 - missing) * np.log(np.maximum(texts, 1))).mean())

    def term(self, model: Model, state: State, inputs: Inputs, depth: int | None = None) -> Term:
        loss = conditional_term if self.settings.conditional_head else span_term
        return loss(model, state, inputs)

    def outputs(
        self, model: Model, state: State, inputs: Inputs, depth: int | None = None
    ) -> Outputs:
        """Start and end logits of each token; of the conditional head, its beams (spans.py)."""
        if self.settings.conditional_head:
            return beam_spans(model, state, inputs)
        logits = model.head(self.head, depth)(state).float().cpu().numpy()
        return np.split(logits, np.cumsum(inputs.batch.lengths)[:-1])

    def decode(
        self, examples: Examples, features: Features, outputs: Outputs
    ) -> list[AnswerPrediction]:
        """The best spans of all windows of a question."""
        best_spans = spans_from_beams if self.settings.conditional_head else spans_from_scores
        found: list[list[_Characters]] = [[] for _ in examples]
        nothing = np.full(len(examples), np.inf)
        edges = np.append(features.batch.starts, len(features.batch.ids))
        for sequence, number in enumerate(features.example_of.tolist()):
            tokens = slice(edges[sequence], edges[sequence + 1])
            inside, owned = features.batch.is_text[tokens], features.extras["owned"][tokens]
            spans, null = best_spans(outputs[sequence], inside, owned, self.settings.answer_length)
            places = features.extras["offsets"][tokens]
            found[number] += [
                _Characters(s.score, int(places[s.first, 0]), int(places[s.last, 1])) for s in spans
            ]
            nothing[number] = min(nothing[number], null)
        return [
            self._prediction(example, spans, float(null))
            for example, spans, null in zip(examples, found, nothing, strict=True)
        ]

    def _prediction(
        self, example: QuestionExample, found: list[_Characters], null: float
    ) -> AnswerPrediction:
        """The n best, with probabilities among them; how much likelier no answer is."""
        best = sorted(found, key=lambda one: -one.score)[:CANDIDATES]
        distinct: dict[str, _Characters] = {}
        for one in best:
            distinct.setdefault(example.passage[one.first : one.last], one)
        scores = np.array([one.score for one in distinct.values()])
        weights = np.exp(scores - scores.max(initial=-np.inf))
        candidates = [
            AnswerCandidate(text, one.first, one.score, float(weight))
            for (text, one), weight in zip(distinct.items(), weights / weights.sum(), strict=True)
        ]
        # The conditional head says it outright; otherwise [CLS] is compared with the best span.
        odds = null if self.settings.conditional_head or not best else null - best[0].score
        return self._answer(example.id, candidates, odds)

    def _answer(
        self, id: str, candidates: Sequence[AnswerCandidate], odds: float
    ) -> AnswerPrediction:
        """The best answer; none where there is none, or where that is the likelier thing."""
        limit = self.settings.threshold
        silent = not candidates or (limit is not None and odds > limit)
        text, start = ("", 0) if silent else (candidates[0].text, candidates[0].start)
        return AnswerPrediction(id, text, start, odds, tuple(candidates))

    def merge(self, predictions: Predictions) -> AnswerPrediction:
        """The answers of several models vote with their probabilities."""
        votes: dict[str, AnswerCandidate] = {}
        for candidate in (one for prediction in predictions for one in prediction.candidates):
            so_far = votes.get(candidate.text, replace(candidate, probability=0.0))
            more = candidate.probability / len(predictions)
            votes[candidate.text] = replace(so_far, probability=so_far.probability + more)
        best = sorted(votes.values(), key=lambda candidate: -candidate.probability)
        odds = float(np.mean([prediction.null_odds for prediction in predictions]))
        return self._answer(predictions[0].id, best, odds)

    def together_with(self, others: Sequence[Self]) -> Self:
        """Models that all hold answers back do so together at the mean of their thresholds."""
        found = [task.settings.threshold for task in (self, *others)]
        known = [threshold for threshold in found if threshold is not None]
        mean = sum(known) / len(known) if len(known) == len(found) else None
        return type(self)(self.settings.model_copy(update={"threshold": mean}))

    def all_alike(self, predictions: Predictions) -> bool:
        return len({prediction.text for prediction in predictions}) < 2

    def trivial(self, train: Examples, examples: Examples) -> list[AnswerPrediction]:
        """With even odds of no answer, so that the better of both is scored."""
        found = [nearest_sentence(example.question, example.passage) for example in examples]
        return [
            AnswerPrediction(
                example.id, text, start, 0.0, (AnswerCandidate(text, start, 0.0, 1.0),)
            )
            for example, (start, text) in zip(examples, found, strict=True)
        ]

    def write_submission(self, path: Path, predictions: Predictions) -> None:
        """The folder that SQuAD's scorers read."""
        odds = {one.id: one.null_odds for one in predictions}
        texts = {one.id: one.text for one in predictions}
        write_predictions(path, texts, odds if self.settings.has_unanswerable else None)

    def score(self, examples: Examples, predictions: Predictions) -> Scores:
        """Exact match and F1; with unanswerable questions, at the best threshold too."""
        best = {one.id: (one.candidates or (one,))[0].text for one in predictions}
        if not self.settings.has_unanswerable:
            scores = squad_v1(gold_answers(examples), best)
        else:
            odds = {one.id: one.null_odds for one in predictions}
            scores = squad_v2(gold_answers(examples), best, odds, self.settings.threshold)
        return {
            name: value if name.endswith("thresh") else value / 100
            for name, value in scores.items()
            if not name.endswith("total")
        }

    def intervals(self, examples: Examples, predictions: Predictions) -> dict[str, Interval]:
        texts = {one.id: one.text for one in predictions}
        version = "2.0" if self.settings.has_unanswerable else "1.1"
        found = score_questions(gold_answers(examples), texts, version)
        return {"exact": bootstrap_mean(found.exact), "f1": bootstrap_mean(found.f1)}

    def calibrated(self, scores: Scores) -> QuestionSettings:
        """Where the model holds answers back: above the odds that were best on dev, rounded up."""
        best = scores.get("best_f1_thresh")
        threshold = None if best is None else best + ROUNDING
        return self.settings.model_copy(update={"threshold": threshold})


class _Characters(NamedTuple):
    """A run of characters of a passage."""

    score: float
    first: int
    last: int


def _target(
    example: QuestionExample, places: NDArray[np.int32], begin: int, end: int, before: int
) -> tuple[int, int, int]:
    """The first and last token of the (first) answer in this window, and whether it is not here."""
    if not example.answers:
        return AT_CLS
    answer = example.answers[0]
    first, last = span_of(places, answer.start, answer.start + len(answer.text))
    if first < begin or last >= end or last < first:
        return AT_CLS
    return first - begin + before, last - begin + before, 0


def _in_sequence(values: NDArray[Any], before: int) -> NDArray[Any]:
    """Values of a window's tokens, with zeros for the tokens before and the [SEP] after them."""
    widths = [(before, 1)] + [(0, 0)] * (values.ndim - 1)
    return np.pad(values, widths)
