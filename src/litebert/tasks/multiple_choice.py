"""Multiple choice, as in RACE: each option is read with the passage, the best one wins.

[CLS] passage [SEP] question and option [SEP]. An underscore in the question is where the option
goes; otherwise they are joined by a space. The passage loses its end, question and option their
beginning (Google's code keeps their last 128 tokens).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.base import Outputs, Prediction, Scores, TaskSettings
from litebert.tasks.examples import ChoiceExample
from litebert.tasks.features import NOTHING, Features, Sequences, encode_all
from litebert.tasks.scores.metrics import accuracy
from litebert.text.tokenizer import Tokenizer


class MultipleChoice:
    """Choose one of several options."""

    head = "multiple_choice"

    def __init__(self, settings: TaskSettings) -> None:
        self.settings = settings

    def features(self, examples: Sequence[ChoiceExample], tokenizer: Tokenizer) -> Features:
        """A sequence an option; those of a question lie side by side."""
        sequences, shortened = Sequences(tokenizer), 0
        distinct = list(dict.fromkeys(example.passage for example in examples))
        passages = dict(zip(distinct, encode_all(tokenizer, distinct), strict=True))
        asked = [
            ask(example.question, option) for example in examples for option in example.options
        ]
        options = iter(encode_all(tokenizer, asked))
        longest = min(self.settings.question_length, self.settings.length - sequences.extra_of_pair)
        for owner, example in enumerate(examples):
            passage, cut = passages[example.passage], False
            for number in range(len(example.options)):
                option = next(options)[-longest:]
                room = self.settings.length - sequences.extra_of_pair - len(option)
                cut |= len(passage) > room
                label = example.answer if number == 0 and example.answer is not None else NOTHING
                sequences.add(owner, label, passage[: max(room, 0)], option)
            shortened += cut
        return Features(sequences.batch(together=self.settings.options), shortened)

    def outputs(self, model: Model, state: State, inputs: Inputs) -> Outputs:
        """Log-probabilities of the options, one number a sequence."""
        logits = model.multiple_choice(state, self.settings.options).float().log_softmax(-1)
        return list(logits.flatten().cpu().numpy()[:, None])

    def decode(
        self, examples: Sequence[ChoiceExample], features: Features, outputs: Outputs
    ) -> list[Prediction]:
        """The likeliest option."""
        table = np.exp(np.concatenate(outputs)).reshape(len(examples), -1)
        return [self._prediction(row) for row in table]

    def _prediction(self, row: np.ndarray) -> Prediction:
        return {"choice": int(row.argmax()), "scores": [float(p) for p in row]}

    def merge(self, predictions: Sequence[Prediction]) -> Prediction:
        """The mean of the options' probabilities."""
        return self._prediction(np.mean([p["scores"] for p in predictions], 0))

    def score(self, examples: Sequence[ChoiceExample], predictions: Sequence[Prediction]) -> Scores:
        """Accuracy, for all and by level."""
        truth = np.array([example.answer for example in examples])
        guess = np.array([prediction["choice"] for prediction in predictions])
        levels = np.array([example.level or "" for example in examples])
        scores = {"accuracy": accuracy(truth, guess)}
        for level in sorted(set(levels.tolist()) - {""}):
            here = levels == level
            scores[level] = accuracy(truth[here], guess[here])
        return scores


def ask(question: str, option: str) -> str:
    """A question with one of its options."""
    return question.replace("_", option) if "_" in question else f"{question} {option}"
