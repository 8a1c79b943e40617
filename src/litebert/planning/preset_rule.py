"""The preset that fits a budget: tokens in, settings and their reasons out. Pure, stated whole.

    size       layers x units   embeddings   learning rate, at 2,048 tokens a step
    smallest   2 x 128          64           2e-3    (albert-tiny)
               2 x 256          128          1.5e-3
               3 x 256          128          1.5e-3
               6 x 256          128          1e-3    (albert-mini)
               6 x 512          128          7e-4
    largest    12 x 768         128          5e-4    (albert-base's shape)

The size is the largest that sees at least TOKENS_PER_WEIGHT tokens for each weight a token passes
(half of its forward FLOPs): what the runs of docs/log/ had that were worth their minutes (2 x 128
in ten minutes, 2 x 256 and 3 x 256 in an hour). Sequences are 128 tokens long, 64 where there are
few tokens and 256 where there are very many. Steps have 8,192 tokens: 64 sequences, which small
presets learn more from in the same time than 16, as larger products keep cores busier; down to
2,048 where fewer than FEW_STEPS would be left, up to 65,536 where more than MANY_STEPS would. The
learning rate follows by the square root.
Masking is albert-tiny's: 15 %, single tokens, frequent ones less often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.planning.count import flops_per_token

BASE = "albert-tiny"  # what is not said below is as in this preset
TOKENS_PER_WEIGHT = 8
STEP_TOKENS, USUAL_STEP_TOKENS, MOST_STEP_TOKENS = 2048, 8192, 65536
FEW_STEPS, MANY_STEPS = 500, 20_000
LENGTHS = ((3e6, 64), (300e6, 128), (math.inf, 256))  # up to so many tokens
MANY_PASSES = 40  # over the text, beyond which more of it would be worth more than more time


@dataclass(frozen=True)
class Size:
    """A shape of encoder, and the learning rate it bears at STEP_TOKENS a step."""

    layers: int
    width: int
    embedding: int
    heads: int
    learning_rate: float

    def __str__(self) -> str:
        return f"{self.layers} shared layers of {self.width} units"

    def settings(self) -> dict[str, Any]:
        """As a preset has it."""
        return {
            "num_hidden_layers": self.layers, "hidden_size": self.width,
            "embedding_size": self.embedding, "num_attention_heads": self.heads,
            "intermediate_size": 4 * self.width,
        }  # fmt: skip


SIZES = (
    Size(2, 128, 64, 4, 2e-3),
    Size(2, 256, 128, 4, 1.5e-3),
    Size(3, 256, 128, 4, 1.5e-3),
    Size(6, 256, 128, 4, 1e-3),
    Size(6, 512, 128, 8, 7e-4),
    Size(12, 768, 128, 12, 5e-4),
)


@dataclass(frozen=True)
class ChosenPreset:
    """What was chosen: the settings on top of BASE, the run they make, and why."""

    changes: tuple[tuple[str, Any], ...]  # dotted name -> value
    preset: Preset
    reasons: tuple[str, ...]

    @property
    def toml(self) -> str:
        """The equivalent preset, as a file of one's own would say it."""
        lines, tables = [f'extends = "{BASE}"', f'budget = "{self.preset.budget}"'], {}
        for name, value in self.changes:
            table, _, key = name.partition(".")
            tables.setdefault(table, []).append(f"{key} = {value!r}")
        for table, rows in tables.items():
            lines += ["", f"[{table}]", *rows]
        return "\n".join(lines)


def choose_preset(
    budget: str, tokens_of: Callable[[Preset], float], vocab_size: int, text_tokens: int
) -> ChosenPreset:
    """The preset for a budget.

    Args:
        budget: As `pretrain` takes it.
        tokens_of: How many tokens the budget buys for a preset of some size.
        vocab_size: Tokens of the corpus's tokenizer.
        text_tokens: Tokens of the corpus.
    """
    size, tokens, reasons = SIZES[0], 0.0, []
    for candidate in SIZES:
        preset = _build(budget, _shape(candidate, vocab_size))
        bought, wanted = tokens_of(preset), tokens_wanted(preset)
        if candidate is not SIZES[0] and bought < wanted:
            reasons.append(
                f"{candidate} would see {_millions(bought)}, and wants {_millions(wanted)}"
            )
            break
        size, tokens = candidate, bought
    length = next(length for most, length in LENGTHS if tokens <= most)
    step_tokens = _step_tokens(tokens)
    rate = float(f"{size.learning_rate * math.sqrt(step_tokens / STEP_TOKENS):.2g}")
    changes = _shape(size, vocab_size) | {
        "data.max_length": length, "data.batch_size": step_tokens // length,
        "optimizer.learning_rate": rate,
    }  # fmt: skip
    reasons.insert(0, f"{size}: the budget buys {_millions(tokens)}")
    reasons.append(
        f"{tokens / step_tokens:,.0f} steps of {step_tokens:,} tokens, {length} a sequence"
    )
    if text_tokens and tokens > MANY_PASSES * text_tokens:
        reasons.append(
            f"that is {tokens / text_tokens:,.0f} passes over the text: more text would help more"
        )
    return ChosenPreset(tuple(changes.items()), _build(budget, changes), tuple(reasons))


def _step_tokens(tokens: float) -> int:
    """Tokens of a step, of a run of so many."""
    found = STEP_TOKENS
    for limit, steps in ((USUAL_STEP_TOKENS, FEW_STEPS), (MOST_STEP_TOKENS, MANY_STEPS)):
        while found < limit and tokens / (2 * found) > steps:
            found *= 2
    return found


def tokens_wanted(preset: Preset) -> float:
    """The fewest tokens that a size is worth its time for."""
    weights = sum(flops_per_token(preset, preset.data.max_length).values()) / 2
    return TOKENS_PER_WEIGHT * weights


def _shape(size: Size, vocab_size: int) -> dict[str, Any]:
    shape = {**size.settings(), "vocab_size": vocab_size}
    return {f"model.{name}": value for name, value in shape.items()}


def _build(budget: str, changes: dict[str, Any]) -> Preset:
    preset = load_preset(BASE, [f"{name}={value}" for name, value in changes.items()])
    layers, width = preset.model.num_hidden_layers, preset.model.hidden_size
    title = f"chosen for the budget: {layers} shared layers of width {width}"
    return Preset.build({**preset.model_dump(), "budget": budget, "title": title}, "preset")


def _millions(tokens: float) -> str:
    return f"{tokens / 1e6:,.1f} million tokens"
