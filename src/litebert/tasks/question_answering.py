"""Answers as spans of a passage: SQuAD 1.1 and 2.0.

[CLS] question [SEP] window of the passage [SEP]. A long passage is read in windows, `stride` tokens
from one to the next; a window without the answer points at [CLS]. Answers are cut from the original
passage by the places of their tokens, never put together from pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.base import Outputs, Prediction, Scores, TaskSettings
from litebert.tasks.examples import QuestionExample
from litebert.tasks.features import Features, Sequences, encode_all
from litebert.tasks.scores.squad_metrics import gold_answers, squad_v1, squad_v2
from litebert.tasks.spans import Candidate, beam_spans, best_spans, merge_answers
from litebert.text.tokenizer import Encoding, Tokenizer

KEPT = 20  # candidates a question keeps
AT_CLS = (0, 0, 1)  # start, end, and that there is no answer in this window


class QuestionAnswering:
    """Find the answer to a question in a passage, or say that it is not there."""

    def __init__(self, settings: TaskSettings) -> None:
        self.settings = settings
        self.head = "conditional_span" if settings.conditional else "span"

    def features(self, examples: Sequence[QuestionExample], tokenizer: Tokenizer) -> Features:
        """The windows of each question."""
        sequences, divided, shortened = Sequences(tokenizer), 0, 0
        encoded: dict[str, Encoding] = {}
        questions = encode_all(tokenizer, (example.question for example in examples))
        offsets: list[NDArray[np.int32]] = []
        owned: list[NDArray[np.bool_]] = []
        for owner, (example, question) in enumerate(zip(examples, questions, strict=True)):
            passage = encoded.get(example.passage)
            if passage is None:
                passage = encoded[example.passage] = tokenizer.encode_aligned(example.passage)
            ids, places = np.array(passage.ids, np.int64), _as_array(passage.offsets)
            room = self.settings.length - sequences.extra_of_pair
            longest = min(self.settings.question_length, room // 2)
            shortened += len(question) > longest
            question = question[:longest]
            windows = self._windows(len(ids), room - len(question))
            divided += len(windows) > 1
            before = sequences.extra_of_pair - 1 + len(question)
            for number, (begin, end) in enumerate(windows):
                label = _target(example, places, begin, end, before)
                sequences.add(owner, label, question, ids[begin:end])
                offsets.append(_spread(places[begin:end], before))
                owned.append(_spread(_most_context(windows, number), before))
        batch = sequences.batch()
        return Features(batch, shortened, divided, np.concatenate(offsets), np.concatenate(owned))

    def _windows(self, tokens: int, room: int) -> list[tuple[int, int]]:
        step = min(self.settings.stride, max(room // 2, 1))  # no answer falls between two windows
        starts = range(0, max(tokens - room, 0) + step, step)
        return [(start, min(start + room, tokens)) for start in starts]

    def outputs(self, model: Model, state: State, inputs: Inputs) -> Outputs:
        """Start and end logits of each token; of the conditional head, its beams (spans.py)."""
        if self.settings.conditional:
            return beam_spans(model, state, inputs)
        logits = model.span(state).float().cpu().numpy()
        return np.split(logits, np.cumsum(inputs.batch.lengths)[:-1])

    def decode(
        self, examples: Sequence[QuestionExample], features: Features, outputs: Outputs
    ) -> list[Prediction]:
        """The best spans of all windows of a question."""
        found: list[list[Candidate]] = [[] for _ in examples]
        nothing = np.full(len(examples), np.inf)
        starts, lengths = features.batch.starts, features.batch.lengths
        assert features.offsets is not None
        assert features.owned is not None
        for number, owner in enumerate(features.owners().tolist()):
            tokens = slice(starts[number], starts[number] + lengths[number])
            inside, owned = features.batch.inside[tokens], features.owned[tokens]
            spans, null = best_spans(
                outputs[number], inside, owned, self.settings.answer_length,
                conditional=self.settings.conditional,
            )  # fmt: skip
            places = features.offsets[tokens]
            found[owner] += [Candidate(s.score, *_cut(places, s.first, s.last)) for s in spans]
            nothing[owner] = min(nothing[owner], null)
        return [
            self._prediction(example.passage, candidates, float(null))
            for example, candidates, null in zip(examples, found, nothing, strict=True)
        ]

    def _prediction(self, passage: str, found: list[Candidate], null: float) -> Prediction:
        """The n best, with probabilities among them; how much likelier no answer is."""
        best = sorted(found, key=lambda one: -one.score)[:KEPT]
        texts: dict[str, dict[str, Any]] = {}
        for one in best:
            text = passage[one.first : one.last]
            texts.setdefault(text, {"text": text, "start": one.first, "score": one.score})
        listed = list(texts.values())
        _normalize(listed)
        # The conditional head says it outright; otherwise [CLS] is compared with the best span.
        odds = null if self.settings.conditional or not best else null - best[0].score
        return self._answer(listed, odds)

    def _answer(self, best: list[dict[str, Any]], odds: float) -> Prediction:
        """The best answer; none where there is none, or where that is the likelier thing."""
        limit = self.settings.threshold
        silent = not best or (limit is not None and odds > limit)
        answer = {"text": "", "start": 0} if silent else best[0]
        return {"text": answer["text"], "start": answer["start"], "null_odds": odds, "best": best}

    def merge(self, predictions: Sequence[Prediction]) -> Prediction:
        """The answers of several models vote with their probabilities."""
        return self._answer(*merge_answers(predictions))

    def score(
        self, examples: Sequence[QuestionExample], predictions: Sequence[Prediction]
    ) -> Scores:
        """Exact match and F1; with unanswerable questions, at the best threshold too."""
        golds = gold_answers(examples)
        pairs = list(zip(examples, predictions, strict=True))
        guesses = {e.id: (p["best"] or [p])[0]["text"] for e, p in pairs}  # held back or not
        if not self.settings.impossible:
            scores = squad_v1(golds, guesses)
        else:
            odds = {example.id: prediction["null_odds"] for example, prediction in pairs}
            scores = squad_v2(golds, guesses, odds, self.settings.threshold)
        shares = {name: value / 100 for name, value in scores.items() if _is_share(name)}
        return {**shares, **{n: v for n, v in scores.items() if n.endswith("thresh")}}


def _is_share(name: str) -> bool:
    return not (name.endswith("thresh") or name.endswith("total"))


def _as_array(offsets: Sequence[tuple[int, int]]) -> NDArray[np.int32]:
    return np.array(offsets, np.int32).reshape(-1, 2)


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


def span_of(places: NDArray[np.int32], start: int, end: int) -> tuple[int, int]:
    """The tokens that hold the characters start..end of a passage."""
    first = int(np.searchsorted(places[:, 1], start, side="right"))
    last = int(np.searchsorted(places[:, 0], end, side="left")) - 1
    return first, last


def _cut(places: NDArray[np.int32], first: int, last: int) -> tuple[int, int]:
    return int(places[first, 0]), int(places[last, 1])


def _spread(values: NDArray[Any], before: int) -> NDArray[Any]:
    """Values of a window's tokens, with zeros for the tokens before and the [SEP] after them."""
    widths = [(before, 1)] + [(0, 0)] * (values.ndim - 1)
    return np.pad(values, widths)


def _most_context(windows: Sequence[tuple[int, int]], number: int) -> NDArray[np.bool_]:
    """Which tokens of a window no other window shows with more context (BERT's max-context)."""
    begin, end = windows[number]
    tokens = np.arange(begin, end)
    scores = []
    for first, last in windows:
        context = np.minimum(tokens - first, last - 1 - tokens) + 0.01 * (last - first)
        inside = (tokens >= first) & (tokens < last)
        scores.append(np.where(inside, context, -np.inf))
    return np.argmax(scores, 0) == number


def _normalize(best: list[dict[str, Any]]) -> None:
    """Scores as probabilities among the listed."""
    if not best:
        return
    scores = np.array([entry["score"] for entry in best])
    shares = np.exp(scores - scores.max())
    for entry, share in zip(best, shares / shares.sum(), strict=True):
        entry["probability"] = float(share)
