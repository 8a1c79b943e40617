"""The scale rule: what of a paper's run is kept at a small budget, and what shrinks.

Kept: the objectives, the masking, the input format, the ratios E/H and I/H, the ratio of a
generator to its discriminator, what the layers share, and the order of depths and widths. A table
that asks about depth keeps its depths as they are, up to the deepest a scale allows; one that asks
about the batch size keeps their ratios; one that asks about dropout keeps it.

Shrunk: H (and E, I and the heads with it), L, the length of sequences, the batch, the tokens. The
vocabulary is the corpus's. Dropout is off, as no text is read twice. GELU is the exact one for all:
on CPUs the tanh form of some papers' code takes several times as long. AdamW with one warmup and
linear decay stands for every paper's optimizer, because LAMB's batches of thousands do not fit;
each row chooses its learning rate by a small sweep that is counted in its budget. All rows begin
from values counted from the corpus (`initialization = "corpus_tokens"`): from the paper's random
start, budgets of minutes end on the plateau of predicting frequencies, and nothing can be compared
there. Steps have 64 sequences, not 16, because a sequence is one example of a sentence pair: with
16 a step nothing of this size told the order of sentences, whatever else it learned
(docs/log/initialization.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from litebert.base.settings import Tree, merge
from litebert.configs.schema import Preset
from litebert.reproduction.table import PaperTable, ScaleName

EMBEDDING_STEP = 8
REFERENCE_BATCH = 2048  # RoBERTa's middle one: what the scale's batch stands for in its table


@dataclass(frozen=True)
class BudgetScale:
    """One budget's shape."""

    name: ScaleName
    about: str
    width: float  # of the paper's H
    depth: float  # of the paper's L, where depth is not the question
    deepest: int  # layers at most, where it is
    head_size: int
    max_length: int
    batch_size: int  # full sequences a step
    learning_rates: tuple[float, ...]
    sweep: float  # tokens of one try of a learning rate, as a fraction of a run's
    seconds: float  # a run of less time than this is of this scale
    tokens: float  # or of fewer tokens
    sequences: int  # held-out ones that a run is measured on


SCALES: dict[str, BudgetScale] = {
    "minutes": BudgetScale(
        "minutes", "H = 128 for base, a quarter of the layers, 128 tokens", 1 / 6, 1 / 4, 12, 32,
        128, 64, (2e-3, 4e-3), 0.15, 20 * 60, 30e6, 1600,
    ),
    "hour": BudgetScale(
        "hour", "H = 256 for base, half of the layers, 128 tokens", 1 / 3, 1 / 2, 24, 64, 128, 64,
        (1.4e-3, 2.8e-3), 0.1, 4 * 3600, 300e6, 3200,
    ),
    "eight_hours": BudgetScale(
        "eight_hours", "H = 384 for base, all layers, 256 tokens", 1 / 2, 1.0, 24, 64, 256, 32,
        (5e-4, 1e-3), 0.05, float("inf"), float("inf"), 6400,
    ),
}  # fmt: skip


def scale_for(seconds: float | None, tokens: float | None) -> BudgetScale:
    """The scale of a run's budget, in time or in tokens."""
    for scale in SCALES.values():
        if seconds is not None and seconds < scale.seconds:
            return scale
        if seconds is None and tokens is not None and tokens < scale.tokens:
            return scale
    return SCALES["eight_hours"]


def leaves_out(table: PaperTable, row: str, scale: BudgetScale) -> str | None:
    """Why a row is not run at a scale, if it is not."""
    depth = table.row_preset(row).model.num_hidden_layers
    if "depth" in table.varies and depth > scale.deepest:
        return f"{depth} layers; this budget goes to {scale.deepest}"
    return None


def scaled_preset(table: PaperTable, row: str, scale: BudgetScale) -> Preset:
    """A row's run at a scale; learning rate, seed and budget are set by the grid."""
    paper = table.row_preset(row)
    tree = paper.model_dump()
    keep_dropout = "dropout" in table.varies
    tree["model"] = _shrunk(tree["model"], table, scale, keep_dropout)
    if tree["generator"] is not None:
        generator = _shrunk(tree["generator"], table, scale, keep_dropout)
        tree["generator"] = merge(generator, {"embedding_size": tree["model"]["embedding_size"]})
    batch = scale.batch_size
    if "batch_size" in table.varies:
        batch = max(round(batch * paper.data.batch_size / REFERENCE_BATCH), 1)
    changes: Tree = {
        "title": f"{table.title}: {table.rows[row].title}, at the scale of {scale.name}",
        "initialization": "corpus_tokens",
        "stages": (),
        "data": {"max_length": scale.max_length, "batch_size": batch, "batch_by": "tokens"},
        "optimizer": {
            "name": "adamw", "bias_correction": True, "reference_batch_size": 0,
            "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.01, "gradient_clipping": 1.0,
            "learning_rate": scale.learning_rates[0],
        },
        "schedule": {"warmup": 0.06, "decay_power": 1.0, "continuous": True},
        "evaluation": {"every": 0.25, "sequences": 128},
        "checkpoint": {"keep": 1},
    }  # fmt: skip
    return Preset.build(merge(tree, changes), f"table {table.name}, row {row!r}")


def _shrunk(model: Tree, table: PaperTable, scale: BudgetScale, keep_dropout: bool) -> Tree:
    width = _rounded(model["hidden_size"] * scale.width, scale.head_size)
    same = model["embedding_size"] == model["hidden_size"]
    embedding = _rounded(model["embedding_size"] * scale.width, EMBEDDING_STEP)
    depth = model["num_hidden_layers"]
    if "depth" not in table.varies:
        depth = max(round(depth * scale.depth), 1)
    changes: dict[str, Any] = {
        "hidden_size": width,
        "embedding_size": width if same else embedding,
        "intermediate_size": width * model["intermediate_size"] // model["hidden_size"],
        "num_attention_heads": max(width // scale.head_size, 1),
        "num_hidden_layers": depth,
    }
    if model["hidden_act"] == "gelu_new":
        changes["hidden_act"] = "gelu"
    if not keep_dropout:
        changes |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return merge(model, changes)


def _rounded(value: float, step: int) -> int:
    return max(round(value / step), 1) * step
