"""What the card of a pretrained model tells: corpus, budget, held-out scores, preset."""

from __future__ import annotations

from litebert.base.intervals import wilson
from litebert.configs.schema import Preset
from litebert.corpus.store import Store
from litebert.model.card import CardFacts, CardScore
from litebert.train.metrics import Sums


def pretrained_facts(
    preset: Preset, store: Store, held_out: Sums | None, *, steps: int, tokens: int, seconds: float
) -> CardFacts:
    """The facts of a finished run; `held_out` are the sums of its last evaluation."""
    total = store.total
    return CardFacts(
        title=f"{preset.title}, pretrained",
        data={
            "corpus": f"{total.documents:,} documents, {total.sentences:,} sentences, "
            f"{total.tokens:,} tokens from {total.text_bytes / 1e6:,.1f} MB of text",
            "held out": f"{store.info.held_out:.2%} of the documents",
            "training": f"{steps:,} steps, {tokens:,} tokens, {seconds:,.0f} s",
        },
        scores=[] if held_out is None else _scores(held_out),
        settings=preset.model_dump(mode="json", exclude_defaults=True),
    )


def _scores(held_out: Sums) -> list[CardScore]:
    """Accuracies on held-out text; intervals take answers for independent."""
    return [
        CardScore(f"{name}, held-out accuracy", found.value, found)
        for name, count, sums in held_out.rows()
        if count and "correct" in sums
        for found in [wilson(sums["correct"], count)]
    ]
