"""A bounded, uniform sample of a stream: the same one for the same stream and seed."""

from __future__ import annotations

import random
from collections.abc import Iterable


def reservoir(stream: Iterable[str], size: int, seed: int) -> list[str]:
    """At most `size` items, each with the same chance, in the order of the stream."""
    chooser = random.Random(seed)
    kept: list[tuple[int, str]] = []
    for index, item in enumerate(stream):
        if index < size:
            kept.append((index, item))
        else:
            place = int(chooser.random() * (index + 1))
            if place < size:
                kept[place] = (index, item)
    return [item for _, item in sorted(kept)]
