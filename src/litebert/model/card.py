"""The model card: what a model is, what it was trained on, how good it is, and where it opens.

`model_card` is a pure function of the model taken apart and of the facts that its trainer knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from litebert.base.intervals import Interval
from litebert.model.huggingface import Contents
from litebert.model.tensor_names import architecture_for

_MEAN, _PAIR, _SPAN = "mean_classification", "bi_encoder_classification", "conditional_span"
_REFUSING = {
    _MEAN: "AutoModelForSequenceClassification", _PAIR: "AutoModelForSequenceClassification",
    _SPAN: "AutoModelForQuestionAnswering",
}  # fmt: skip
_VECTORS = "SentenceTransformer(folder).encode(texts) gives "
_PRETRAINING = {"masked_lm", "sentence_pair", "replaced_token", "span_boundary"}


@dataclass(frozen=True)
class CardScore:
    """A score on unseen examples, between what other examples might have given."""

    name: str
    value: float
    interval: Interval | None = None


@dataclass(frozen=True)
class CardFacts:
    """What a trainer knows of its model."""

    title: str
    data: Mapping[str, str] = field(default_factory=dict)  # what -> how much, and of what
    scores: Sequence[CardScore] = ()
    baseline: str | None = None  # what a plain rival has on the same examples, a sentence
    settings: Mapping[str, Any] = field(default_factory=dict)  # the recipe, or the preset
    notes: Sequence[str] = ()  # a sentence each


def where_it_opens(family: str, heads: Sequence[str]) -> list[str]:
    """A line a library: how a model folder with these heads opens there, or that it does not."""
    return [
        f"litebert: {_in_litebert(heads)}",
        f"transformers: {_in_transformers(family, heads)}",
        f"sentence-transformers: {_in_sentence_transformers(heads)}",
    ]


def _in_litebert(heads: Sequence[str]) -> str:
    if _PRETRAINING.issuperset(heads):
        return "litebert.load(folder), to fine-tune or to make vectors of texts"
    return "litebert.predict(folder, file); litebert.load(folder) is the model"


def _in_transformers(family: str, heads: Sequence[str]) -> str:
    own = next((head for head in heads if head in _REFUSING), None)
    name = architecture_for(family, heads).name
    if own is None:
        auto = "AutoModelFor" + name.partition("For")[2] if "For" in name else "AutoModel"
        return f"{auto}.from_pretrained(folder), which is {name}, with the same outputs"
    return (
        f"AutoModel.from_pretrained(folder) is the encoder; its {own} head is none that "
        f"transformers has, so {_REFUSING[own]} stops with a size mismatch, on purpose"
    )


def _in_sentence_transformers(heads: Sequence[str]) -> str:
    if _MEAN in heads:
        return f"{_VECTORS}the logits, a column a label"
    if _PAIR in heads:
        return f"{_VECTORS}the vector of each text; the head that compares two stays in litebert"
    if _PRETRAINING.issuperset(heads):
        return f"{_VECTORS}the mean of a text's tokens"
    return "does not open there as meant: this is no model of one vector a text"


def model_card(contents: Contents, facts: CardFacts | None = None) -> str:
    """README.md of a model folder."""
    config = contents.config
    parameters = sum(tensor.numel() for tensor in contents.tensors.values())
    shape = f"{config.family}, {config.num_hidden_layers} layers of width {config.hidden_size}"
    parts = [
        f"# {facts.title if facts else shape}",
        f"{shape}; {parameters:,} parameters; layers share: {config.sharing}; heads: "
        f"{', '.join(contents.heads) or 'none'}.",
        *(_facts(facts) if facts else []),
        "## Where it opens",
        "\n".join(f"- {line}" for line in where_it_opens(config.family, contents.heads)),
        *_labels(contents),
        "## The encoder",
        f"```json\n{json.dumps(config.model_dump(), indent=2)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _facts(facts: CardFacts) -> list[str]:
    parts = ["\n".join(facts.notes)] if facts.notes else []
    if facts.data:
        parts += ["## Data", "\n".join(f"- {what}: {size}" for what, size in facts.data.items())]
    if facts.scores:
        rows = [
            f"| {one.name} | {one.value:.4f} | {_between(one.interval)} |" for one in facts.scores
        ]
        parts += [
            "## Scores",
            "\n".join(["| score | value | 95 % interval |", "|---|---|---|", *rows]),
        ]
    if facts.baseline:
        parts.append(facts.baseline)
    if facts.settings:
        settings = json.dumps(facts.settings, indent=2, ensure_ascii=False)
        parts += ["## Recipe", f"```json\n{settings}\n```"]
    return parts


def _between(interval: Interval | None) -> str:
    return "not measured" if interval is None else f"{interval.low:.4f} to {interval.high:.4f}"


def _labels(contents: Contents) -> list[str]:
    if not any(head.endswith("classification") for head in contents.heads):
        return []
    return [f"Labels, in the order of the logits: {', '.join(contents.labels)}."]
