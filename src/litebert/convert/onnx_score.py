"""How good an exported file is at its task: `litebert export tuned web --format onnx --check DATA`.

A kind of task asks a model for its head, and the head for logits. Here a head runs the ONNX file,
so every kind decodes and scores what the file says as it does with a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from litebert.base.batches import Batch, bucket_by_length, pad, take
from litebert.base.errors import MissingExtraError, SettingsError
from litebert.convert.onnx_check import open_session
from litebert.convert.onnx_encoder import IDS, MASK, TYPES
from litebert.convert.onnx_heads import HEAD_GRAPHS, P_MASK
from litebert.inference.model_folder import open_tokenizer, task_of
from litebert.model.heads import ConditionalSpan
from litebert.model.inputs import to_inputs
from litebert.model.layout import Packed, State
from litebert.model.model import Model
from litebert.tasks.data import read_split
from litebert.tasks.features import Features
from litebert.tasks.featurize import make_features
from litebert.tasks.readers.text_file import Say
from litebert.tasks.source import DataSource
from litebert.tasks.task import Prediction, Task

BATCH_TOKENS = 4096
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Exam:
    """Labelled examples for one fine-tuned model."""

    task: Task
    examples: Sequence[Any]
    features: Features
    pad_id: int

    @classmethod
    def open(cls, model: Model, folder: Path, head: str, data: Path, say: Say) -> Exam:
        """Read the examples, before anything is exported."""
        task = task_of(model, folder)
        if task.head != head:
            raise SettingsError(
                f"--check: the task of {folder} is answered by its {task.head} head, not by {head}"
            )
        examples = read_split(task, DataSource.build(data), say=say)
        features = make_features(task, examples, open_tokenizer(folder), folder)
        return cls(task, examples, features, model.config.pad_token_id)

    def predict(self, file: Path) -> list[Prediction]:
        """What a file says of the examples."""
        session = open_session(file)
        if session is None:
            raise MissingExtraError("onnxruntime", "onnx", "--check")
        batch, outputs = self.features.batch, [None] * len(self.features.batch)
        for groups in bucket_by_length(
            batch.group_lengths, max_tokens=BATCH_TOKENS, padded=True, descending=True
        ):
            chosen = batch.group_members(groups)
            inputs = to_inputs(take(batch, chosen), CPU)
            stand_in = cast(Model, _FileModel(session, inputs.batch, self.pad_id))
            state = State(torch.empty(0, 0), Packed(tuple(inputs.batch.lengths.tolist())))
            found = self.task.outputs(stand_in, state, inputs)
            for place, output in zip(chosen.tolist(), found, strict=True):
                outputs[place] = cast(Any, output)
        return self.task.decode(self.examples, self.features, cast(Any, outputs))

    def score(self, file: Path) -> dict[str, float]:
        """The metrics of the task."""
        scores = self.task.score(self.examples, self.predict(file))
        return {name: scores[name] for name in self.task.settings.metrics}


@dataclass(frozen=True)
class _FileModel:
    """What a task sees of a model: its heads."""

    session: Any
    batch: Batch
    pad_id: int

    def head(self, name: str, depth: int | None = None) -> Any:
        def answers(state: State, allowed_BT: Tensor | None = None, **_: Any) -> Any:
            return self._answers(name, allowed_BT)

        return answers

    def _answers(self, name: str, allowed_BT: Tensor | None) -> Any:
        """The file's outputs in the shapes of our own heads: tokens end to end, no padding."""
        padded = pad(self.batch, self.pad_id)
        feeds = {IDS: padded.ids, MASK: padded.attention_mask, TYPES: padded.token_types}
        if allowed_BT is not None:
            feeds[P_MASK] = (~allowed_BT).numpy()
        shape = list(padded.ids.shape)
        if HEAD_GRAPHS[name].middle is not None:
            shape[:1] = [-1, self.batch.group_size]
        found = [
            torch.from_numpy(output) for output in self.session.run(None, {
                given.name: feeds[given.name].astype(np.int64).reshape(shape)
                for given in self.session.get_inputs()
            })
        ]  # fmt: skip
        if name == "conditional_span":
            start_BT, end_BKT, best_BK, unanswerable_B = found
            return ConditionalSpan(start_BT, end_BKT, best_BK.long(), unanswerable_B)
        logits = torch.stack(found, -1) if len(found) > 1 else found[0]
        if logits.shape[:2] == padded.ids.shape:
            return logits[torch.from_numpy(padded.attention_mask)]
        return logits.flatten() if name == "multiple_choice" else logits
