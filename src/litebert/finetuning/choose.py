"""Which recipe: the one that is named, the paper's for its models and tasks, or the rule's.

`choose_recipe` finds what the rule (recipe_rule.py) wants to know, and says what it chose and why.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from litebert.base.settings import parse_overrides
from litebert.finetuning.recipe import Recipe, build_recipe, has_row, load_recipe
from litebert.finetuning.recipe_rule import (
    COVERED,
    PAPER,
    SMALL,
    DataFacts,
    Method,
    StartFacts,
    Training,
    choose_by_rule,
)
from litebert.model.model import Model
from litebert.tasks.data import TaskData
from litebert.tasks.readers.text_file import Say
from litebert.tasks.registry import build_task
from litebert.text.tokenizer import Tokenizer

MEASURED = 1_000  # examples whose lengths stand for all
UNLIMITED = 1 << 20  # tokens, more than any sequence has
PRETRAINING_HEADS = {"masked_lm", "replaced_token"}


def choose_recipe(
    start: Model, folder: Path, data: TaskData, tokenizer: Tokenizer, name: str | None,
    overrides: Sequence[str], say: Say, *, contrasts: bool = True,
) -> Recipe:  # fmt: skip
    """A recipe by its name, or one that fits; `overrides` change it, `say` is told the reasons.

    Without `contrasts`, the rule is not to choose contrastive pairs.
    """
    task, encoder = data.settings.name, start_facts(start)
    if name is None and encoder.training == "published" and encoder.width >= PAPER:
        name = "paper" if has_row("paper", task) else None
    if name is not None:
        without_dropout = start.config.hidden_dropout_prob == 0
        recipe = load_recipe(name, task, overrides, without_dropout=without_dropout)
        if "max_length" in parse_overrides(overrides):  # refused later if too long
            return recipe
        return recipe.model_copy(update={"max_length": min(recipe.max_length, encoder.positions)})
    decided = set(parse_overrides(overrides))
    if "steps" in decided:
        decided.add("epochs")
    facts = data_facts(data, tokenizer)
    method = _asked_method(overrides) or (None if contrasts else "whole")
    choice = choose_by_rule(facts, encoder, method, decided)
    say("a recipe that fits the data (--set KEY=VALUE changes any of it):")
    for reason in choice.reasons:
        say(f"  {reason}")
    return build_recipe(choice.settings, overrides, f"recipe for {task}")


def _asked_method(overrides: Sequence[str]) -> Method | None:
    """What the user says of it: with `contrastive=false`, or exits, all learns."""
    asked = parse_overrides(overrides)
    for method in get_args(Method):
        if asked.get(method) is True:
            return method
    everything = asked.get("contrastive") is False or asked.get("exits") is True
    return "whole" if everything else None


def data_facts(data: TaskData, tokenizer: Tokenizer) -> DataFacts:
    """What the examples are like: how many, of which form, how long in tokens."""
    task = build_task(data.settings.model_copy(update={"max_length": UNLIMITED}))
    measured = len(data.train) <= MEASURED
    sample = data.train if measured else random.Random(0).sample(data.train, MEASURED)
    lengths = task.features(sample, tokenizer).batch.lengths
    dev = next(iter(data.dev.values()), [])
    labels = len(data.settings.labels) if task.contrasts else 0
    return DataFacts(
        form=task.form(data.train), train=len(data.train), dev=len(dev),
        numeric=not data.settings.labels,
        length=int(np.quantile(lengths, COVERED, method="higher")),
        of_a_label=len(data.train) / labels if labels else None,
    )  # fmt: skip


def start_facts(start: Model) -> StartFacts:
    """What the encoder is like: how large, and how it was trained, as its folder tells."""
    width = start.config.hidden_size
    told = start.sentence_encoder is not None  # as our own pretrained encoders tell, too
    means_vectors = told and PRETRAINING_HEADS.isdisjoint(start.heads)
    training: Training = "sentence" if means_vectors else "published"
    if width < SMALL:
        training = "small"
    return StartFacts(training, width, start.config.longest_sequence)
