"""Model cards: what they tell, and where folders are said to open."""

from __future__ import annotations

import pytest
import transformers

from litebert.base.intervals import Interval
from litebert.model.card import CardFacts, CardScore, model_card, where_it_opens
from litebert.model.heads import HEADS
from tests.model.test_folder import FAMILIES, LABELS, random_model, tiny


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_head_says_where_it_opens(family: str, head: str) -> None:
    """One line a library, and every class that is named is one that `transformers` has."""
    lines = dict(line.split(": ", 1) for line in where_it_opens(family, [head], "tuned/model"))
    assert list(lines) == ["litebert", "transformers", "sentence-transformers"]
    assert "FOLDER" not in "".join(lines.values())
    named = lines["transformers"].split(".from_pretrained")[0]
    assert hasattr(transformers, named)


def test_a_card_tells_what_its_trainer_knows() -> None:
    facts = CardFacts(
        "classify, fine-tuned", {"training examples": "200"},
        [CardScore("dev: accuracy", 0.805, Interval(0.805, 0.79, 0.82)), CardScore("dev: f1", 0.8)],
        "TF-IDF has 0.697.", {"epochs": 20}, ["Seed 1 of 3."],
    )  # fmt: skip
    card = model_card(random_model(tiny(), "mean_classification").contents(), facts)
    for told in (
        "# classify, fine-tuned\n", "Seed 1 of 3.", "- training examples: 200",
        "| dev: accuracy | 0.8050 | 0.7900 to 0.8200 |", "| dev: f1 | 0.8000 | not measured |",
        "TF-IDF has 0.697.", '"epochs": 20', "in the order of the logits: " + ", ".join(LABELS),
        *where_it_opens("albert", ["mean_classification"]),
    ):  # fmt: skip
        assert told in card


def test_a_card_without_facts_describes_the_model() -> None:
    card = model_card(random_model(tiny("bert")).contents())
    assert card.startswith("# bert, 6 layers of width 12\n")
    assert "## Scores" not in card
