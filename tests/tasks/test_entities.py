"""Entities: every scheme by hand, and everything else against a slow walk by CoNLL's rules."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from litebert.base.errors import SettingsError
from litebert.tasks.metrics.classification import LabelScore
from litebert.tasks.metrics.entities import Entity, entities, entity_scores, split_tag

PERSON, PLACE = Entity("PER", 0, 2), Entity("LOC", 2, 3)
SCHEMES = {
    "IOB1": "I-PER I-PER I-LOC O I-LOC B-LOC",
    "IOB2": "B-PER I-PER B-LOC O B-LOC B-LOC",
    "IOBES": "B-PER E-PER S-LOC O S-LOC S-LOC",
    "BILOU": "B-PER L-PER U-LOC O U-LOC U-LOC",
}

tags = st.sampled_from(["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("X", "Y"))])
sentences = st.lists(st.lists(st.tuples(tags, tags), max_size=12), max_size=4)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_says_the_same(scheme: str) -> None:
    found = entities(SCHEMES[scheme].split())
    assert found == [PERSON, PLACE, Entity("LOC", 4, 5), Entity("LOC", 5, 6)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("O", []),
        ("I-X", [("X", 0, 1)]),
        ("O I-X I-X", [("X", 1, 3)]),
        ("B-X I-Y", [("X", 0, 1), ("Y", 1, 2)]),
        ("B-X O I-X", [("X", 0, 1), ("X", 2, 3)]),
        ("E-X E-X", [("X", 0, 1), ("X", 1, 2)]),
        ("S-X I-X E-X", [("X", 0, 1), ("X", 1, 3)]),
        ("I-X E-X I-X", [("X", 0, 2), ("X", 2, 3)]),
        ("B-X S-X", [("X", 0, 1), ("X", 1, 2)]),
        ("B I O I", [("", 0, 2), ("", 3, 4)]),
        ("B-a-b I-a-b I-a-c", [("a-b", 0, 2), ("a-c", 2, 3)]),
    ],
)
def test_loose_tags(line: str, expected: list[tuple[str, int, int]]) -> None:
    assert entities(line.split()) == expected


def chunk_ends(tag_before: str, tag: str, type_before: str, type_now: str) -> bool:
    """CoNLL's rules for the end of a chunk, one by one."""
    if tag_before in ("E", "S"):
        return True
    if tag_before == "B" and tag in ("B", "S", "O"):
        return True
    if tag_before == "I" and tag in ("B", "S", "O"):
        return True
    return tag_before != "O" and type_before != type_now


def chunk_starts(tag_before: str, tag: str, type_before: str, type_now: str) -> bool:
    """CoNLL's rules for the start of a chunk, one by one."""
    if tag in ("B", "S"):
        return True
    if tag_before in ("E", "S", "O") and tag in ("E", "I"):
        return True
    return tag != "O" and type_before != type_now


def conll_counts(pairs: list[list[tuple[str, str]]]) -> dict[str, list[int]]:
    """Right, guessed and true chunks of each type, by walking both columns at once as CoNLL does.

    A chunk is under way as long as both columns have begun it together and neither has ended.
    """
    counts: dict[str, list[int]] = {}
    for sentence in pairs:
        under_way = False
        before = [("O", ""), ("O", "")]
        for pair in [*sentence, ("O", "O")]:
            now = [split_tag(tag) for tag in pair]
            moves = [(a[0], b[0], a[1], b[1]) for a, b in zip(before, now, strict=True)]
            ends = [chunk_ends(*move) for move in moves]
            starts = [chunk_starts(*move) for move in moves]
            if under_way and all(ends) and before[0][1] == before[1][1]:
                counts[before[0][1]][0] += 1
                under_way = False
            elif under_way and (ends[0] != ends[1] or now[0][1] != now[1][1]):
                under_way = False
            for side, slot in ((0, 2), (1, 1)):
                if starts[side]:
                    counts.setdefault(now[side][1], [0, 0, 0])[slot] += 1
            if all(starts) and now[0][1] == now[1][1]:
                under_way = True
            before = now
    return counts


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def scored(right: int, guessed: int, count: int) -> tuple[float, float, float, int]:
    precision, recall = ratio(right, guessed), ratio(right, count)
    return precision, recall, ratio(2 * precision * recall, precision + recall), count


def as_tuple(score: LabelScore) -> tuple[float, float, float, int]:
    return score.precision, score.recall, score.f1, score.support


@given(sentences)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_scores_are_conlls(pairs: list[list[tuple[str, str]]]) -> None:
    labels = [[pair[0] for pair in sentence] for sentence in pairs]
    predictions = [[pair[1] for pair in sentence] for sentence in pairs]
    found, counts = entity_scores(labels, predictions), conll_counts(pairs)
    assert list(found.types) == sorted(counts)
    for name, count in counts.items():
        assert as_tuple(found.types[name]) == pytest.approx(scored(*count))
    totals = [sum(count[slot] for count in counts.values()) for slot in range(3)]
    assert as_tuple(found.overall) == pytest.approx(scored(*totals))


def test_boundaries_and_types_both_count() -> None:
    labels = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG"]]
    predictions = [["B-PER", "O", "O", "B-LOC"], ["B-LOC"]]
    found = entity_scores(labels, predictions)
    assert found.overall == LabelScore(1 / 3, 1 / 3, 1 / 3, 3)
    assert found.types == {
        "LOC": LabelScore(0.5, 1.0, 2 / 3, 1),
        "ORG": LabelScore(0.0, 0.0, 0.0, 1),
        "PER": LabelScore(0.0, 0.0, 0.0, 1),
    }


def test_schemes_may_be_mixed_and_nothing_scores_nothing() -> None:
    lines = [line.split() for line in SCHEMES.values()]
    assert entity_scores(lines, lines[::-1]).overall == LabelScore(1.0, 1.0, 1.0, 16)
    assert entity_scores([], []).overall == LabelScore(0.0, 0.0, 0.0, 0)
    assert entity_scores([["O"]], [["O"]]).types == {}


@pytest.mark.parametrize("tag", ["PER", "X-PER", "", "b-PER", "O-PER"])
def test_what_is_no_tag_is_said(tag: str) -> None:
    with pytest.raises(SettingsError, match=f"'{tag}' is not a tag of entities"):
        entities(["O", tag])


def test_lengths_must_match() -> None:
    with pytest.raises(SettingsError, match="sentence 1 has 2 tags and 1 predictions"):
        entity_scores([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(SettingsError, match="1 tagged sentences and 2 predictions"):
        entity_scores([["O"]], [["O"], ["O"]])
