"""Which objective trains which head."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from litebert.corpus.arrange import arrangement
from litebert.objectives.base import Objective
from litebert.objectives.mlm import MaskedLanguage
from litebert.objectives.pairs import SentencePair
from litebert.objectives.rtd import ReplacedToken
from litebert.objectives.sbo import SpanBoundary

PAIRS = {"swap": "sentence_order", "borrow": "next_sentence"}

# head -> objective, for a named arrangement and ELECTRA's weight
OBJECTIVES: dict[str, Callable[[str, float], Objective]] = {
    "masked_language": lambda arranged, weight: MaskedLanguage(),
    "sentence_pair": lambda arranged, weight: SentencePair(PAIRS[arrangement(arranged).negatives]),
    "span_boundary": lambda arranged, weight: SpanBoundary(),
    "replaced_token": lambda arranged, weight: ReplacedToken(weight),
}


def objectives(heads: Sequence[str], arranged: str, weight: float = 50.0) -> list[Objective]:
    """The objectives of pretraining heads, in their order."""
    return [OBJECTIVES[head](arranged, weight) for head in heads]
