"""What a run knows of held-out text: masked tokens, sentence pairs, movement through its layers.

Every model is asked the same samples with the same masks (single tokens, in ordinary pairs),
however it was trained; so rows of other maskings or input formats can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from litebert.base.batches import Batch
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.store import Store
from litebert.model.folder import find_model_folder
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.objectives.masking import Masker, Masking
from litebert.objectives.registry import build_objectives
from litebert.reproduction.layers import layer_movements, roughness
from litebert.reproduction.measurement import Measurement
from litebert.reproduction.probe import fit_probe, pair_vectors
from litebert.train.distributed import DistributedGroup
from litebert.train.evaluate import MICRO_BATCH_TOKENS
from litebert.train.held_out import evaluate_batches, held_out_batches
from litebert.train.metrics import Sums

POINTS = 100.0
FORMATS = {"next_sentence": "bert", "sentence_order": "albert"}  # pair questions
PLAIN = "plain-pairs"
PROBE_SEQUENCES = 2  # training sequences of a probe for each one that it is evaluated on
LAYER_SEQUENCES = 64
CPU = torch.device("cpu")


class HeldOut:
    """The held-out text of a corpus, as all rows are asked about it."""

    def __init__(self, corpus: Path, max_length: int, sequences: int) -> None:
        self.store, self.sequences = Store([corpus]), sequences
        self.max_length, self.group = max_length, DistributedGroup()
        self.masker = Masker(Masking(unit="token"), self.store.tokenizer)

    def measure(self, run: Path) -> dict[str, Measurement]:
        """All that can be asked of a run's model."""
        model = Model.load(find_model_folder(run))
        found: dict[str, Measurement] = {}
        if "masked_lm" in model.heads:
            sums = self._masked(model)
            counts = [one.counts[0] for one in sums]
            rows = [next(iter(one.rows()))[2] for one in sums]
            found["masked_lm_accuracy"] = Measurement.of_ratio(
                [row["correct"] for row in rows], counts, POINTS
            )
            found["masked_lm_loss"] = Measurement.of_ratio(
                [row["loss"] for row in rows], counts, 1.0
            )
        for question, input_format in FORMATS.items():
            found |= self._pairs(model, question, input_format)
        if model.config.num_hidden_layers > 2:
            found["layer_roughness"] = self._roughness(model)
        return found

    def batches(self, model: Model, input_format: str, sequences: int | None = None) -> list[Batch]:
        """Held-out batches, without segments for a model that knows none."""
        loading = LoaderSettings(input_format=input_format, max_length=self.max_length)
        wanted = self.sequences if sequences is None else sequences
        return _fitted(
            held_out_batches(self.store, loading, self.masker, wanted, self.group), model
        )

    def _masked(self, model: Model) -> list[Sums]:
        """Losses and answers, batch by batch: batches are the blocks."""
        learner = Learner(model, build_objectives(["masked_lm"])).eval()
        found = [
            evaluate_batches(learner, [batch], self.group, "auto", MICRO_BATCH_TOKENS)
            for batch in self.batches(model, PLAIN)
        ]
        return [sums for sums in found if sums.counts[0]]

    def _pairs(self, model: Model, question: str, input_format: str) -> dict[str, Measurement]:
        """A question about pairs, put to a probe and to the model's own head, if it has one."""
        probe = fit_probe(pair_vectors(model, self._training(model, input_format)))
        parts = [pair_vectors(model, [batch]) for batch in self.batches(model, input_format)]
        parts = [part for part in parts if len(part.labels)]
        answers = {f"{question}_probe": [probe(part.vectors) for part in parts]}
        own = [part.answers for part in parts if part.answers is not None]
        if own:
            answers[question] = own
        counts = [len(part.labels) for part in parts]
        found = {}
        for name, said in answers.items():
            both = zip(said, parts, strict=True)
            correct = [float((one == part.labels).sum()) for one, part in both]
            found[name] = Measurement.of_ratio(correct, counts, POINTS)
        return found

    def _training(self, model: Model, input_format: str) -> Iterable[Batch]:
        settings = LoaderSettings(
            input_format=input_format, max_length=self.max_length, batch_size=32, seed=7
        )
        loader = Loader(self.store, settings, None)
        count = PROBE_SEQUENCES * self.sequences // 32
        return _fitted((next(loader) for _ in range(count)), model)

    def _roughness(self, model: Model) -> Measurement:
        """How unevenly tokens move from layer to layer (the paper's Figure 1), in percent."""
        batches = self.batches(model, PLAIN, LAYER_SEQUENCES)
        inputs = [to_inputs(batch, CPU) for batch in batches]
        moved = [layer_movements(model, one).distance_LN for one in inputs]
        tokens_LN = np.concatenate(moved, 1)
        return Measurement.of_score(
            lambda chosen: roughness(tokens_LN[:, chosen].mean(1)), tokens_LN.shape[1], POINTS
        )


def _fitted(batches: Iterable[Batch], model: Model) -> list[Batch]:
    return list(_without_segments(batches) if model.config.type_vocab_size < 2 else batches)


def _without_segments(batches: Iterable[Batch]) -> Iterator[Batch]:
    for batch in batches:
        yield replace(batch, token_types=np.zeros_like(batch.token_types))
