"""`pretrain` without a preset: how fast this machine is, and the preset that fits the budget.

The rule is planning/preset_rule.py's. Under a budget of time every size that comes into question
takes real training steps for a few seconds. What was chosen is in the run's run.json, and a resumed
run takes it from there: it is measured once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from litebert.base.budget import Budget, parse_budget
from litebert.base.errors import SettingsError
from litebert.base.settings import Tree, merge
from litebert.configs.schema import Preset
from litebert.corpus.store import Store
from litebert.planning.preset_rule import choose_preset
from litebert.train.run_folder import frozen_preset
from litebert.train.speed import measure_speed

AUTO = "auto"
MEASURED_FRACTION = 0.002  # of a budget of time, for each size
SHORTEST, LONGEST = 0.5, 3.0  # seconds


def auto_preset(
    budget: str | None, store: Store, out: Path, changes: Tree, say: Callable[[str], None]
) -> Preset:
    """The preset of a run for which none was named: the one it began with, or one that fits."""
    frozen = frozen_preset(out)
    if frozen is not None:
        changed = changes if budget is None else {**changes, "budget": budget}
        return Preset.build(merge(frozen.model_dump(), changed), "preset")
    if budget is None:
        raise SettingsError("name a preset (litebert presets), or give a --budget to choose one by")
    tokens_of = _tokens_of(parse_budget(budget), store)
    choice = choose_preset(budget, tokens_of, store.tokenizer.vocab_size, store.training_tokens)
    for reason in choice.reasons:
        say(reason)
    say(f"the same as this preset, in a file of your own:\n{choice.toml}\n")
    return Preset.build(merge(choice.preset.model_dump(), changes), "preset")


def _tokens_of(budget: Budget, store: Store) -> Callable[[Preset], float]:
    """What a budget buys."""
    if budget.kind == "steps":
        raise SettingsError(
            "a budget of steps does not say which size fits; name a preset, or give a time (20m) "
            "or tokens (20Mtok)"
        )
    if budget.kind == "tokens":
        return lambda _: budget.amount
    seconds = min(max(MEASURED_FRACTION * budget.amount, SHORTEST), LONGEST)

    def bought(preset: Preset) -> float:
        data = preset.data
        speed = measure_speed(preset, data.batch_size, data.max_length, seconds, store)
        return budget.amount * speed.tokens_per_second

    return bought
