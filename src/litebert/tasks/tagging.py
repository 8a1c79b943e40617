"""Tagging words: named entities, parts of speech. A word's tag is asked of its first piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from litebert.base.batch import Numbers
from litebert.base.errors import SettingsError
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.base import Outputs, Prediction, Scores, TaskSettings
from litebert.tasks.examples import TaggedExample
from litebert.tasks.features import NOTHING, Features, Ids, Sequences
from litebert.tasks.scores.entities import entity_scores
from litebert.tasks.scores.metrics import accuracy
from litebert.text.tokenizer import Tokenizer


class Tagging:
    """Tag each word of a sentence."""

    head = "token_classification"

    def __init__(self, settings: TaskSettings) -> None:
        self.settings = settings
        self._number = {label: number for number, label in enumerate(settings.labels)}

    def features(self, examples: Sequence[TaggedExample], tokenizer: Tokenizer) -> Features:
        """A sentence in one sequence, or in several that part it between words."""
        sequences, divided = Sequences(tokenizer), 0
        places: list[Numbers] = []
        targets: list[list[int]] = []
        room = self.settings.length - sequences.extra
        for owner, example in enumerate(examples):
            ids, firsts = _pieces(tokenizer, example.words)
            windows = list(_windows(len(ids), firsts, room))
            divided += len(windows) > 1
            for begin, end in windows:
                here = (firsts >= begin) & (firsts < end)
                places.append(firsts[here] - begin + 1)  # after [CLS]
                targets.append(self._targets(example, np.flatnonzero(here)))
                sequences.add(owner, NOTHING, ids[begin:end])
        batch = sequences.batch()
        starts = np.repeat(batch.starts, [len(place) for place in places])
        positions = np.concatenate([np.zeros(0, np.int64), *places]) + starts
        wanted = np.array([tag for row in targets for tag in row], np.int32)
        return Features(replace(batch, positions=positions, targets=wanted), 0, divided)

    def _targets(self, example: TaggedExample, words: Numbers) -> list[int]:
        if example.tags is None:
            return [NOTHING] * len(words)
        return [self._number.get(example.tags[word], NOTHING) for word in words]

    def outputs(self, model: Model, state: State, inputs: Inputs) -> Outputs:
        """Log-probabilities of the tags, a row for each word of the sequence."""
        logits = model.token_classification(state)[inputs.positions].float().log_softmax(-1)
        owner = inputs.batch.sequence[inputs.batch.positions]
        counts = np.bincount(owner, minlength=len(inputs.batch))
        return np.split(logits.cpu().numpy(), np.cumsum(counts)[:-1])

    def decode(
        self, examples: Sequence[TaggedExample], features: Features, outputs: Outputs
    ) -> list[Prediction]:
        """The likeliest tag of each word."""
        rows: list[list[np.ndarray]] = [[] for _ in examples]
        for owner, output in zip(features.owners().tolist(), outputs, strict=True):
            rows[owner] += list(np.exp(output))
        return [self._prediction(found) for found in rows]

    def _prediction(self, rows: Sequence[np.ndarray]) -> Prediction:
        tags = [self.settings.labels[int(row.argmax())] for row in rows]
        return {"tags": tags, "scores": [[float(p) for p in row] for row in rows]}

    def merge(self, predictions: Sequence[Prediction]) -> Prediction:
        """The mean of the tags' probabilities."""
        return self._prediction(list(np.mean([p["scores"] for p in predictions], 0)))

    def score(self, examples: Sequence[TaggedExample], predictions: Sequence[Prediction]) -> Scores:
        """Entity F1, precision and recall, and the share of right tags."""
        truth = [list(example.tags or ()) for example in examples]
        guess = [prediction["tags"] for prediction in predictions]
        right = accuracy([t for row in truth for t in row], [t for row in guess for t in row])
        if "entity_f1" not in self.settings.metrics:
            return {"accuracy": right}
        overall = entity_scores(truth, guess).overall
        return {
            "entity_f1": overall.f1, "precision": overall.precision, "recall": overall.recall,
            "accuracy": right,
        }  # fmt: skip


def _pieces(tokenizer: Tokenizer, words: Sequence[str]) -> tuple[Ids, Numbers]:
    """The ids of a sentence, and the first piece of each word.

    The sentence is encoded as a whole, as in pretraining. A word that leaves no piece of its own
    (it holds nothing but what cleaning drops) shares the piece that comes next.
    """
    if not words:
        raise SettingsError("a sentence without words cannot be tagged")
    encoding = tokenizer.encode_aligned(" ".join(words))
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    begins = np.array([start for start, _ in encoding.offsets], np.int64)
    ids = np.array(encoding.ids, np.int64)
    if not len(ids):
        return np.array([tokenizer.special.unk]), np.zeros(len(words), np.int64)
    return ids, np.minimum(np.searchsorted(begins, starts), len(ids) - 1)


def _windows(tokens: int, firsts: Numbers, room: int) -> Iterator[tuple[int, int]]:
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
