"""The input formats by what they do, and what a sample is made of."""

from __future__ import annotations

import numpy as np

from litebert.corpus.sampling.input_formats import INPUT_FORMATS
from litebert.corpus.sampling.samples import Samples
from litebert.corpus.sampling.window import Window

NAMES = sorted(INPUT_FORMATS)
PAIRS = [name for name in NAMES if INPUT_FORMATS[name].form == "pair"]
ONE_DOCUMENT = ("doc-sentences", "spanbert")


def runs_of(samples: Samples, number: int) -> list[tuple[int, int]]:
    low, high = samples.fragments[number], samples.fragments[number + 1]
    return list(
        zip(samples.starts[low:high].tolist(), samples.ends[low:high].tolist(), strict=True)
    )


def document_of_token(window: Window) -> np.ndarray:
    tokens = np.diff(window.sentences[window.documents])
    return np.repeat(np.arange(len(window.keys)), tokens)


def check_primary(window: Window, samples: Samples, crosses: bool) -> None:
    """Sentences are cut into [first, last) without gap or overlap."""
    order = np.argsort(samples.first, kind="stable")
    first, last = samples.first[order], samples.last[order]
    assert (first < last).all()
    assert first[0] == 0
    assert last[-1] == len(window.sentences) - 1
    assert (last[:-1] == first[1:]).all()
    if not crosses:
        assert (window.document_of[first] == window.document_of[last - 1]).all()
