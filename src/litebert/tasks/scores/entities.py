"""Entities out of tags, and their F1: right is an entity of the same words and the same type.

Tags are IOB1, IOB2, IOBES or BILOU, read as leniently as CoNLL's scorer reads them: nothing is
thrown away because its beginning is missing. A tag that is not O begins an entity if it is B or S
(U), if what came before was O, E (L) or S (U), or if the type changes; the entity lasts until the
next beginning or O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import SettingsError
from litebert.tasks.scores.metrics import LabelScore, label_score

OUTSIDE = "O"
PREFIXES = {"B": "B", "I": "I", "E": "E", "L": "E", "S": "S", "U": "S"}
BEGINS = ("B", "S")
ENDS = ("E", "S", OUTSIDE)


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


def entity_scores(truth: Iterable[Sequence[str]], guess: Iterable[Sequence[str]]) -> EntityScores:
    """Precision, recall and F1 of the entities of many sentences, given as tags."""
    right, guessed, count = Counter[str](), Counter[str](), Counter[str]()
    for number, (true_tags, guessed_tags) in enumerate(_sentences(truth, guess)):
        if len(true_tags) != len(guessed_tags):
            raise SettingsError(
                f"sentence {number} has {len(true_tags)} tags and {len(guessed_tags)} guesses; "
                "give every word one"
            )
        true, found = entities(true_tags), entities(guessed_tags)
        count.update(entity.type for entity in true)
        guessed.update(entity.type for entity in found)
        right.update(entity.type for entity in set(true) & set(found))
    return EntityScores(
        overall=label_score(right.total(), guessed.total(), count.total()),
        types={
            name: label_score(right[name], guessed[name], count[name])
            for name in sorted(count | guessed)
        },
    )


def entity_counts(
    truth: Iterable[Sequence[str]], guess: Iterable[Sequence[str]]
) -> NDArray[np.int64]:
    """Entities found, guessed and there: a row for each sentence."""
    rows = [
        (len(set(entities(true)) & set(entities(said))), len(entities(said)), len(entities(true)))
        for true, said in _sentences(truth, guess)
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def f1_of_counts(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1 from counts of found, guessed and there, along the last axis; 0 of nothing is 0."""
    found, guessed, there = np.moveaxis(counts, -1, 0)
    return 2 * found / np.maximum(guessed + there, 1)


def _sentences(
    truth: Iterable[Sequence[str]], guess: Iterable[Sequence[str]]
) -> Iterable[tuple[Sequence[str], Sequence[str]]]:
    truth, guess = list(truth), list(guess)
    if len(truth) != len(guess):
        raise SettingsError(
            f"{len(truth)} tagged sentences and {len(guess)} guesses; give every sentence one"
        )
    return zip(truth, guess, strict=True)
