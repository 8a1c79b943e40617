"""The contract of a task: examples to features, the model's outputs to predictions, and scores.

A task is all that prediction needs. What training needs beside, the loss, is in losses.py, so that
serving a model imports no trainer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from litebert.base.batch import Batch, Numbers
from litebert.base.config import Settings
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import NEEDS_POOLER, Model
from litebert.tasks.features import Features
from litebert.text.tokenizer import Tokenizer

Prediction = dict[str, Any]
Outputs = list[NDArray[np.floating]]  # one array a sequence
Scores = dict[str, float]
Pooling = Literal["first", "mean", "apart"]
Kind = Literal["classify", "pair", "regress", "tag", "qa", "choice"]
KEY = "litebert_task"  # where a model folder's config.json keeps these settings


class TaskSettings(Settings):
    """What a fine-tuned model folder remembers of its task."""

    name: str = Field(description="the task's name: sst-2, squad-2.0, classify, ...")
    kind: Kind
    metrics: tuple[str, ...] = Field(description="the first one chooses the best model")
    labels: tuple[str, ...] = ()
    length: int = Field(default=128, ge=8, description="tokens of a sequence, at most")
    long: Literal["truncate", "stride"] = Field(
        default="truncate",
        description="longer texts: cut off the rest, or read them window by window",
    )
    stride: int = Field(default=64, ge=1, description="tokens from one window to the next")
    pooling: Pooling = Field(
        default="first",
        description="a text's vector: its [CLS] token, the mean of all its tokens, or (apart) that "
        "of each text of a pair by itself",
    )
    question_length: int = Field(
        default=64, ge=1, description="tokens of a question (with its option), at most"
    )
    options: int = Field(default=4, ge=2, description="options of a multiple-choice question")
    answer_length: int = Field(default=30, ge=1, description="tokens of an answer, at most")
    impossible: bool = Field(default=False, description="whether questions may have no answer")
    threshold: float | None = Field(
        default=None, description="no answer is given where its odds are above this"
    )
    conditional: bool = Field(
        default=False, description="SQuAD 2.0's head of the paper, which stays ours"
    )


def read_by_head(head: str, batch: Batch) -> Numbers | None:
    """The tokens whose encodings a task's head looks at; None for all."""
    if head in NEEDS_POOLER:
        return batch.starts
    return np.unique(batch.positions) if head == "token_classification" else None


class Task(Protocol):
    """One task. Pure: everything it knows is in its settings."""

    settings: TaskSettings
    head: str

    def features(self, examples: Sequence[Any], tokenizer: Tokenizer) -> Features:
        """The sequences of some examples."""
        ...

    def outputs(self, model: Model, state: State, inputs: Inputs) -> Outputs:
        """What the model says of each sequence."""
        ...

    def decode(
        self, examples: Sequence[Any], features: Features, outputs: Outputs
    ) -> list[Prediction]:
        """One prediction for each example."""
        ...

    def merge(self, predictions: Sequence[Prediction]) -> Prediction:
        """One prediction out of several models' for the same example."""
        ...

    def score(self, examples: Sequence[Any], predictions: Sequence[Prediction]) -> Scores:
        """The metrics of the task, as shares of 1."""
        ...
