"""Input formats: which text goes into a sample, as the papers have it.

    albert           segment pairs, swapped half the time: sentence order (ALBERT, section 3.1)
    albert-google    the same, with Google's treatment of a lone sentence (below)
    bert             segment pairs, the second from another document half the time (NSP)
    segment-pair, sentence-pair, full-sentences, doc-sentences   RoBERTa's four (its section 4.2)
    spanbert         one segment of one document
    electra          segment pairs in order, a tenth of them single segments; nothing to decide
    sentences        every sentence by itself, for vectors of sentences (train/distill.py)
    plain-pairs      ALBERT's pairs, always in order: the "None" row of its Table 5

A chunk of one sentence cannot be split into two. Under sentence order ours (`lone = "single"`)
makes it a single segment without a label: no other document ever enters an order decision. Google's
code (`lone = "random_next"`) sets a random other document behind it and labels it as swapped.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from litebert.base.errors import SettingsError, did_you_mean
from litebert.base.settings import Settings


class InputFormat(Settings):
    """The choices that tell input formats apart."""

    form: Literal["pair", "single", "full"] = Field(
        description="two segments, one segment of one document, or sentences across documents"
    )
    unit: Literal["segment", "sentence"] = Field(
        default="segment",
        description="what a segment is made of: as many sentences as fit, or one",
    )
    negatives: Literal["swap", "random_next", "none"] = Field(
        default="none",
        description="half of the pairs: swapped, or with another document",
    )
    lone: Literal["single", "random_next"] = Field(
        default="single",
        description="what becomes of a sentence without a neighbour",
    )
    short_seq_prob: float = Field(
        default=0.0, description="fraction of documents cut to a random shorter length"
    )
    single_segment_prob: float = Field(
        default=0.0, description="fraction of pairs left as one segment"
    )


INPUT_FORMATS = {
    "albert": InputFormat(form="pair", negatives="swap", short_seq_prob=0.1),
    "albert-google": InputFormat(
        form="pair", negatives="swap", lone="random_next", short_seq_prob=0.1
    ),
    "bert": InputFormat(
        form="pair", negatives="random_next", lone="random_next", short_seq_prob=0.1
    ),
    "segment-pair": InputFormat(form="pair", negatives="random_next", lone="random_next"),
    "sentence-pair": InputFormat(
        form="pair", unit="sentence", negatives="random_next", lone="random_next"
    ),
    "full-sentences": InputFormat(form="full"),
    "doc-sentences": InputFormat(form="single"),
    "spanbert": InputFormat(form="single"),
    "sentences": InputFormat(form="single", unit="sentence"),
    "electra": InputFormat(form="pair", short_seq_prob=0.05, single_segment_prob=0.1),
    "plain-pairs": InputFormat(form="pair", short_seq_prob=0.1),
}


def input_format(name: str) -> InputFormat:
    """An input format by name."""
    if name not in INPUT_FORMATS:
        raise SettingsError(f"input_format {name!r}: {did_you_mean(name, INPUT_FORMATS)}")
    return INPUT_FORMATS[name]
