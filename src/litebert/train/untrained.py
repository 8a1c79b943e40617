"""A model as pretraining would begin with it: what training is compared with."""

from __future__ import annotations

from pathlib import Path

import torch

from litebert.corpus.statistics import piece_counts
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker
from litebert.presets.recipe import Preset
from litebert.train.build import build_learner, fit_to_corpus
from litebert.train.warm import warm_start


def save_untrained(preset: Preset, corpus: Path, out: Path) -> None:
    """Write the model of a preset, with the start that it names, before its first step."""
    store = Store([corpus])
    fitted = fit_to_corpus(preset, store)
    learner = build_learner(fitted, torch.device("cpu"), (None, None), lambda _: None)
    if fitted.start == "warm":
        counts = piece_counts(store)
        hidden = Masker(fitted.masking, store.tokenizer, counts).hidden(counts)
        warm_start(learner, store, counts, hidden)
    learner.model.save(out, overwrite=True, tokenizer=store.tokenizer)
