"""Entities out of tags, and their F1: correct is one of the same words and the same type.

Tags are IOB1, IOB2, IOBES or BILOU, read as leniently as CoNLL's scorer reads them: nothing is
thrown away because its beginning is missing. A tag that is not O begins an entity if it is B or S
(U), if what came before was O, E (L) or S (U), or if the type changes; the entity lasts until the
next beginning or O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import SettingsError
from litebert.tasks.metrics.classification import LabelScore, label_score

OUTSIDE = "O"
PREFIXES = {"B": "B", "I": "I", "E": "E", "L": "E", "S": "S", "U": "S"}
BEGINS = ("B", "S")
ENDS = ("E", "S", OUTSIDE)

Tags = Iterable[Sequence[str]]  # of sentences


class Entity(NamedTuple):
    """Words [start, end) and their type."""

    type: str
    start: int
    end: int


@dataclass(frozen=True)
class EntityScores:
    """Scores over all entities, each weighing the same, and over those of each type."""

    overall: LabelScore
    types: dict[str, LabelScore]


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of one sentence, in order."""
    found: list[Entity] = []
    before, type_before, start = OUTSIDE, "", 0
    for place, tag in enumerate([*tags, OUTSIDE]):
        prefix, type_now = split_tag(tag)
        begins = prefix in BEGINS or before in ENDS or type_now != type_before
        if before != OUTSIDE and (begins or prefix == OUTSIDE):
            found.append(Entity(type_before, start, place))
        if begins:
            start = place
        before, type_before = prefix, type_now
    return found


def split_tag(tag: str) -> tuple[str, str]:
    """A tag's prefix, as IOBES has it, and its type: what follows the first hyphen."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    prefix, _, type_ = tag.partition("-")
    if prefix not in PREFIXES:
        raise SettingsError(
            f"{tag!r} is not a tag of entities: O, or B-, I-, E-, S-, L-, U- and a type, is"
        )
    return PREFIXES[prefix], type_


def are_entities(tags: Iterable[str]) -> bool:
    """Whether all tags are of entities."""
    return all(tag == OUTSIDE or (tag[1:2] == "-" and tag[0] in PREFIXES) for tag in tags)


def entity_scores(labels: Tags, predictions: Tags) -> EntityScores:
    """Precision, recall and F1 of the entities of many sentences, given as tags."""
    correct, predicted, support = Counter[str](), Counter[str](), Counter[str]()
    for true, found in _sentences(labels, predictions):
        support.update(entity.type for entity in true)
        predicted.update(entity.type for entity in found)
        correct.update(entity.type for entity in set(true) & set(found))
    return EntityScores(
        overall=label_score(correct.total(), predicted.total(), support.total()),
        types={
            name: label_score(correct[name], predicted[name], support[name])
            for name in sorted(support | predicted)
        },
    )


def entity_counts(labels: Tags, predictions: Tags) -> NDArray[np.int64]:
    """Entities that are correct, predicted and there: a row for each sentence."""
    rows = [
        (len(set(true) & set(found)), len(found), len(true))
        for true, found in _sentences(labels, predictions)
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def f1_of_counts(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1 from counts of correct, predicted and there, along the last axis; 0 of nothing is 0."""
    correct, predicted, there = np.moveaxis(counts, -1, 0)
    return 2 * correct / np.maximum(predicted + there, 1)


def _sentences(labels: Tags, predictions: Tags) -> Iterator[tuple[list[Entity], list[Entity]]]:
    """The entities that are there and those predicted, sentence by sentence."""
    labels, predictions = list(labels), list(predictions)
    if len(labels) != len(predictions):
        raise SettingsError(
            f"{len(labels)} tagged sentences and {len(predictions)} predictions; give every "
            "sentence one"
        )
    for number, (true, predicted) in enumerate(zip(labels, predictions, strict=True)):
        if len(true) != len(predicted):
            raise SettingsError(
                f"sentence {number} has {len(true)} tags and {len(predicted)} predictions; give "
                "every word one"
            )
        yield entities(true), entities(predicted)
