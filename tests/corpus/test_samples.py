"""Arrangements: every sentence once, exact layouts, names alone decide."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.corpus.sampling.assemble import assemble
from litebert.corpus.sampling.input_formats import INPUT_FORMATS, InputFormat, input_format
from litebert.corpus.sampling.samples import Samples, make_samples
from litebert.corpus.sampling.window import Window
from tests.corpus.input_formats import (
    NAMES,
    ONE_DOCUMENT,
    PAIRS,
    check_primary,
    document_of_token,
    runs_of,
)
from tests.corpus.stores import FIRST_ID, SPECIAL, make_window, random_lengths, stub_tokenizer

documents = st.lists(
    st.lists(
        st.one_of(st.just(1), st.integers(1, 12), st.integers(1, 700)), min_size=1, max_size=9
    ),
    min_size=1,
    max_size=8,
)


def check_text(
    window: Window, samples: Samples, rules: InputFormat, text: int, between: int
) -> None:
    """What stands in each sample is its primary text, whole unless too long, or borrowed."""
    cum, owner = window.sentences, document_of_token(window)
    for number in range(len(samples)):
        runs = runs_of(samples, number)
        low, high = int(cum[samples.first[number]]), int(cum[samples.last[number]])
        size = sum(end - start for start, end in runs)
        separators = len(runs) - 1 if rules.form == "full" else between * (len(runs) - 1)
        assert all(start < end for start, end in runs)
        assert size + separators <= text
        assert all(owner[start] == owner[end - 1] for start, end in runs)
        if samples.truncated[number]:
            assert size + separators == text, "dropped more than needed"
        borrowed = [run for run in runs if not low <= run[0] < high]
        own = sorted(run for run in runs if run not in borrowed)
        assert samples.random_next[number] == sum(end - start for start, end in borrowed)
        if not samples.truncated[number]:
            assert own[0][0] == low
            assert own[-1][1] == high
            assert all(one[1] == two[0] for one, two in pairwise(own))
            assert all(edge in cum for run in runs for edge in run)
        if rules.form == "full":
            found = [int(owner[start]) for start, _ in runs]
            assert found == list(range(found[0], found[0] + len(runs)))
        else:
            assert len(runs) <= 2
            assert all(owner[start] == owner[low] for start, _ in own)
        for start, _ in borrowed:
            assert runs[-1] in borrowed
            assert owner[start] != owner[low]
            assert samples.labels[number] == 1


def check_layout(window: Window, samples: Samples, batch: Batch, rules: InputFormat) -> None:
    """[CLS] A [SEP] B [SEP] with types 0 0 0 1 1, token by token."""
    edges = np.concatenate([[0], np.cumsum(batch.lengths)]).tolist()
    assert (
        edges[-1]
        == len(batch.ids)
        == len(batch.token_types)
        == len(batch.is_text)
        == len(batch.segment_starts)
    )
    for number in range(len(samples)):
        ids, types, inside, begins = [SPECIAL.cls], [0], [False], [False]
        for place, (start, end) in enumerate(runs_of(samples, number)):
            kind = place if rules.form == "pair" else 0
            text = window.ids[start:end].tolist()
            ids += [*text, SPECIAL.sep]
            types += [kind] * (len(text) + 1)
            inside += [True] * len(text) + [False]
            begins += [True] + [False] * len(text)
        here = slice(edges[number], edges[number + 1])
        assert batch.ids[here].tolist() == ids
        assert batch.token_types[here].tolist() == types
        assert batch.is_text[here].tolist() == inside
        assert batch.segment_starts[here].tolist() == begins


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    documents=documents,
    length=st.one_of(st.integers(8, 24), st.integers(8, 512)),
    seed=st.integers(0, 2**64 - 1),
    copy=st.integers(0, 100),
)
def test_any_documents_at_any_length(
    name: str, documents: list[list[int]], length: int, seed: int, copy: int
) -> None:
    window, rules = make_window(documents), INPUT_FORMATS[name]
    samples = make_samples(window, rules, length, seed, copy)
    check_primary(window, samples, rules.form == "full")
    check_text(window, samples, rules, length - 2, between=1)
    batch = assemble(window, samples, stub_tokenizer())
    assert batch.lengths.max() <= length
    assert batch.lengths.tolist() == samples.lengths(1).tolist()
    check_layout(window, samples, batch, rules)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(documents=documents, length=st.integers(8, 512), seed=st.integers(0, 10**6))
def test_roberta_has_two_separators_in_a_pair_and_no_types(
    name: str, documents: list[list[int]], length: int, seed: int
) -> None:
    window, rules = make_window(documents), INPUT_FORMATS[name]
    separators = 2 if rules.form == "pair" else 1
    samples = make_samples(window, rules, length, seed, 0, separators)
    check_primary(window, samples, rules.form == "full")
    check_text(window, samples, rules, length - 2, separators)
    batch = assemble(window, samples, stub_tokenizer("bpe"), separators)
    assert batch.lengths.max() <= length
    assert batch.lengths.tolist() == samples.lengths(separators).tolist()
    assert not batch.token_types.any()
    edges = np.concatenate([[0], np.cumsum(batch.lengths)]).tolist()
    for number in range(len(samples)):
        wanted = [SPECIAL.cls]
        for place, (start, end) in enumerate(runs_of(samples, number)):
            wanted += [SPECIAL.sep] * separators * (place > 0) + window.ids[start:end].tolist()
        assert batch.ids[edges[number] : edges[number + 1]].tolist() == [*wanted, SPECIAL.sep]


@pytest.mark.parametrize("name", ["albert", "electra", "plain-pairs"])
def test_no_room_is_kept_for_separators_that_a_lone_sentence_does_not_have(name: str) -> None:
    window = make_window([[30]] * 50)
    for separators in (1, 2):
        samples = make_samples(window, INPUT_FORMATS[name], 12, 0, 0, separators)
        assert (samples.lengths(separators) == 12).all(), separators


@pytest.mark.parametrize("name", NAMES)
def test_every_token_once_by_tracing_ids(name: str) -> None:
    """Where nothing is truncated each token of the split stands in one sample, borrowed aside."""
    lengths = random_lengths(1, 400, sentences=(1, 9), tokens=(1, 9))
    window, rules = make_window(lengths), INPUT_FORMATS[name]
    samples = make_samples(window, rules, 512, 0, 0)
    assert not samples.truncated.any()
    batch = assemble(window, samples, stub_tokenizer())
    seen = Counter((batch.ids[batch.is_text] - FIRST_ID).tolist())
    borrowed: Counter[int] = Counter()
    for number in np.flatnonzero(samples.random_next):
        start, end = runs_of(samples, int(number))[1]
        borrowed.update(range(start, end))
    assert seen - borrowed == Counter(range(len(window.ids)))
    if name in ("albert", "plain-pairs", "electra", "full-sentences", "sentences", *ONE_DOCUMENT):
        assert not borrowed
    else:
        assert borrowed


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [16, 64])
def test_every_sentence_once_with_truncation(name: str, length: int) -> None:
    window = make_window(random_lengths(2, 500))
    samples = make_samples(window, INPUT_FORMATS[name], length, 3, 1)
    seen = np.zeros(len(window.sentences) - 1, dtype=int)
    for first, last in zip(samples.first, samples.last, strict=True):
        seen[first:last] += 1
    assert (seen == 1).all()
    text = samples.lengths(1) - 2 - (np.diff(samples.fragments) - 1)
    whole = np.diff(window.sentences[np.stack([samples.first, samples.last])], axis=0)[0]
    plain = samples.random_next == 0
    assert (text + samples.truncated)[plain].tolist() == whole[plain].tolist()


@pytest.mark.parametrize("name", ["albert", "plain-pairs", "electra", *ONE_DOCUMENT])
def test_what_a_sample_becomes_depends_on_its_names_alone(name: str) -> None:
    """The same documents with others or without them give the same samples."""
    lengths = random_lengths(3, 60)
    window = make_window(lengths)
    few = make_window(lengths[20:40])
    few = Window(few.ids, few.sentences, few.documents, window.keys[20:40])
    shift = int(window.sentences[window.documents[20]])
    whole = make_samples(window, INPUT_FORMATS[name], 40, 5, 2)
    part = make_samples(few, INPUT_FORMATS[name], 40, 5, 2)
    every = {
        int(key): (runs_of(whole, number), int(whole.labels[number]))
        for number, key in enumerate(whole.keys)
    }
    for number, key in enumerate(part.keys):
        moved = [(start + shift, end + shift) for start, end in runs_of(part, number)]
        assert every[int(key)] == (moved, int(part.labels[number]))


@pytest.mark.parametrize("name", NAMES)
def test_seed_and_copy_both_change_the_samples(name: str) -> None:
    window = make_window(random_lengths(4, 100))
    kept = [make_samples(window, INPUT_FORMATS[name], 40, seed, copy) for seed, copy in
            ((0, 0), (1, 0), (0, 1), (0, 0))]  # fmt: skip
    assert len({int(key) for samples in kept[:3] for key in samples.keys}) == sum(
        map(len, kept[:3])
    )
    for column in ("starts", "ends", "labels", "keys", "first", "last"):
        assert getattr(kept[0], column).tolist() == getattr(kept[3], column).tolist()
    if name in PAIRS:
        assert kept[0].starts.tolist() != kept[1].starts.tolist() != kept[2].starts.tolist()


def test_taking_samples_keeps_their_columns_together() -> None:
    window = make_window(random_lengths(5, 80))
    for name in ("albert", "full-sentences"):
        samples = make_samples(window, INPUT_FORMATS[name], 48, 0, 0)
        chosen = np.random.default_rng(0).permutation(len(samples))[:17]
        taken = samples.take(chosen)
        for place, number in enumerate(chosen.tolist()):
            assert runs_of(taken, place) == runs_of(samples, number)
            assert taken.keys[place] == samples.keys[number]
            assert taken.labels[place] == samples.labels[number]
            assert taken.first[place] == samples.first[number]
        assert taken.lengths(1).tolist() == samples.lengths(1)[chosen].tolist()
        assert len(samples.take(np.zeros(0, dtype=np.int64))) == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_window_without_documents_gives_no_samples(name: str) -> None:
    empty = np.zeros(1, dtype=np.int64)
    window = Window(np.zeros(0, np.uint16), empty, empty, np.zeros(0, np.uint64))
    samples = make_samples(window, INPUT_FORMATS[name], 64, 0, 0)
    assert len(samples) == 0
    assert len(assemble(window, samples, stub_tokenizer())) == 0


def test_an_unknown_arrangement_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SettingsError, match="'albert'"):
        input_format("alber")
