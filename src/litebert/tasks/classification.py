"""Texts and pairs of texts: one label of several, or a number (regression)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.base import Outputs, Prediction, Scores, TaskSettings
from litebert.tasks.examples import TextExample
from litebert.tasks.features import NOTHING, Features, Ids, Sequences, encode_all
from litebert.tasks.scores.metrics import METRICS
from litebert.text.tokenizer import Tokenizer

HEADS = {
    "first": "classification", "mean": "mean_classification", "apart": "apart_classification",
}  # fmt: skip


class Classification:
    """Classify or rate texts."""

    def __init__(self, settings: TaskSettings) -> None:
        self.settings = settings
        self.rates = settings.kind == "regress"
        self.apart = settings.pooling == "apart"
        self.head = HEADS[settings.pooling]
        self._number = {label: number for number, label in enumerate(settings.labels)}

    def features(self, examples: Sequence[TextExample], tokenizer: Tokenizer) -> Features:
        """A sequence an example; with `long = stride` a window each; apart, one for each text."""
        if self.apart:
            return self._apart(examples, tokenizer)
        sequences, shortened, divided = Sequences(tokenizer), 0, 0
        firsts = encode_all(tokenizer, (example.first for example in examples))
        seconds = encode_all(tokenizer, (example.second or "" for example in examples))
        for owner, (example, first, second) in enumerate(
            zip(examples, firsts, seconds, strict=True)
        ):
            windows = self._windows(first, None if example.second is None else second, sequences)
            for one, other in windows:
                sequences.add(owner, self._target(example), one, other)
            kept = sum(len(ids) for ids in windows[0] if ids is not None)
            lost = kept < len(first) + len(second)
            paired = example.second is not None
            shortened += lost if len(windows) == 1 else paired and len(windows[0][0]) < len(first)
            divided += len(windows) > 1
        batch = sequences.batch(np.float32 if self.rates else np.int64)
        return Features(batch, shortened, divided)

    def _apart(self, examples: Sequence[TextExample], tokenizer: Tokenizer) -> Features:
        """The two texts of an example side by side; the first one carries the label."""
        sequences, cut = Sequences(tokenizer), set[int]()
        room = self.settings.length - sequences.extra
        texts = [text for example in examples for text in (example.first, example.second or "")]
        for place, ids in enumerate(encode_all(tokenizer, texts)):
            owner, second = divmod(place, 2)
            nothing = np.nan if self.rates else NOTHING
            label = nothing if second else self._target(examples[owner])
            sequences.add(owner, label, ids[:room])
            cut |= {owner} if len(ids) > room else set()
        batch = sequences.batch(np.float32 if self.rates else np.int64, together=2)
        return Features(batch, len(cut))

    def _target(self, example: TextExample) -> float | int:
        if self.rates:
            return np.nan if example.label is None else float(example.label)
        return self._number.get(str(example.label), NOTHING)

    def _windows(
        self, first: Ids, second: Ids | None, sequences: Sequences
    ) -> list[tuple[Ids, Ids | None]]:
        """The text as it fits: whole, cut off, or in windows (of a pair, over its second text)."""
        if second is None:
            room = self.settings.length - sequences.extra
            return [(window, None) for window in self._cut(first, room)]
        room = self.settings.length - sequences.extra_of_pair
        if self.settings.long == "stride" and len(first) + len(second) > room:
            first = first[: max(room // 2, room - len(second))]
            return [(first, window) for window in self._cut(second, room - len(first))]
        keep_first, keep_second = fit_pair(len(first), len(second), room)
        return [(first[:keep_first], second[:keep_second])]

    def _cut(self, ids: Ids, room: int) -> list[Ids]:
        if len(ids) <= room or self.settings.long == "truncate":
            return [ids[:room]]
        step = min(self.settings.stride, room)
        starts = range(0, len(ids) - room + step, step)
        return [ids[start : start + room] for start in starts]

    def outputs(self, model: Model, state: State, inputs: Inputs) -> Outputs:
        """Log-probabilities of the labels, or the number."""
        logits = getattr(model, self.head)(state).float()
        rows = (logits if self.rates else logits.log_softmax(-1)).cpu().numpy()
        return list(np.repeat(rows, inputs.batch.together, axis=0))

    def decode(
        self, examples: Sequence[TextExample], features: Features, outputs: Outputs
    ) -> list[Prediction]:
        """The windows of a text vote with their probabilities."""
        owners, table = features.owners(), np.stack(outputs)
        values = table if self.rates else np.exp(table)
        sums = np.zeros((len(examples), table.shape[1]))
        np.add.at(sums, owners, values)
        means = sums / np.bincount(owners, minlength=len(examples))[:, None]
        return [self._prediction(row) for row in means]

    def _prediction(self, row: np.ndarray) -> Prediction:
        if self.rates:
            return {"value": float(row[0])}
        best = int(row.argmax())
        scores = dict(zip(self.settings.labels, (float(p) for p in row), strict=True))
        return {"label": self.settings.labels[best], "scores": scores}

    def merge(self, predictions: Sequence[Prediction]) -> Prediction:
        """The mean of numbers or probabilities."""
        if self.rates:
            return {"value": float(np.mean([p["value"] for p in predictions]))}
        return self._prediction(np.mean([list(p["scores"].values()) for p in predictions], 0))

    def score(self, examples: Sequence[TextExample], predictions: Sequence[Prediction]) -> Scores:
        """The task's metrics."""
        if self.rates:
            truth = [float(example.label) for example in examples if example.label is not None]
            guess = [p["value"] for p in predictions]
        else:
            truth = [self._number[str(example.label)] for example in examples]
            guess = [self._number[p["label"]] for p in predictions]
        return {name: METRICS[name](truth, guess) for name in self.settings.metrics}


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
