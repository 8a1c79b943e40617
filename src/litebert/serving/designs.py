"""What the shape of an encoder costs, by the same counting as `litebert plan`."""

from __future__ import annotations

from typing import Any

from litebert.base.errors import SettingsError
from litebert.model.config import EncoderConfig
from litebert.model.counting import forward_flops, model_parts
from litebert.model.model import Model
from litebert.serving.problems import Problem
from litebert.serving.schemas import Design, DesignRequest

FEED_FORWARD = 4  # times the hidden size, as in all of the papers
FP32, INT8 = 4, 1

# Table 1 of the ALBERT paper: parameters as it rounds them, and shapes, which tests hold to the
# presets.
PAPER_PARAMETERS = {
    "albert-base": 12, "albert-large": 18, "albert-xlarge": 60, "albert-xxlarge": 235,
    "bert-base": 108, "bert-large": 334,
}  # fmt: skip
MILLION = 1_000_000
PUBLISHED: dict[str, dict[str, Any]] = {
    "albert-base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12},
    "albert-large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16},
    "albert-xlarge": {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16},
    "albert-xxlarge": {"hidden_size": 4096, "num_hidden_layers": 12, "num_attention_heads": 64},
    "bert-base": {
        "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "embedding_size": 768, "vocab_size": 30522, "sharing": "none",
    },
    "bert-large": {
        "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
        "embedding_size": 1024, "vocab_size": 30522, "sharing": "none",
    },
}  # fmt: skip


def published_designs(max_length: int) -> list[Design]:
    """The papers' models at one length."""
    return [
        design(DesignRequest(**shape, max_length=max_length), name)
        for name, shape in PUBLISHED.items()
    ]


def design(request: DesignRequest, name: str = "yours") -> Design:
    """Parameters, FLOPs and memory of a shape."""
    shape = request.model_dump(exclude={"max_length"})
    try:
        config = EncoderConfig.build(
            {**shape, "family": "albert", "intermediate_size": FEED_FORWARD * request.hidden_size},
            "design",
        )
    except SettingsError as error:
        raise Problem(422, str(error).removeprefix("design: ")) from None
    parts = model_parts(Model.skeleton(config))
    total = sum(parts.values())
    rounded = PAPER_PARAMETERS.get(name)
    return Design(
        name=name,
        shape=request,
        paper_parameters=None if rounded is None else rounded * MILLION,
        parameters={"total": total, **parts},
        flops_per_token=sum(forward_flops(config, (), request.max_length).values()),
        memory_fp32=FP32 * total,
        memory_int8=INT8 * total,
    )
