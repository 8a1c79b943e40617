from __future__ import annotations

import subprocess
import sys

import pytest

from litebert.base.errors import SettingsError
from litebert.text.training import (
    default_normalization,
    fitting_size,
    reservoir,
    train_from_sentences,
)

from .conftest import ENGLISH, KINDS, many_sentences


@pytest.mark.parametrize("kind", KINDS)
def test_training_is_deterministic(kind: str) -> None:
    """In another process, where Python and the libraries hash with other seeds."""
    size = {"sentencepiece": 260, "wordpiece": 420, "bpe": 400}[kind]
    program = (
        "from litebert.text.training import train_from_sentences\n"
        "from tests.text.conftest import many_sentences\n"
        f"print(train_from_sentences(many_sentences(), {kind!r}, {size}, sample=250).checksum)"
    )
    command = [sys.executable, "-c", program]
    sums = {subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2)}
    sums.add(
        f"{train_from_sentences(many_sentences(), kind, size, sample=250).checksum}\n".encode()
    )
    assert len(sums) == 1


def test_the_seed_and_the_sample_matter() -> None:
    sums = {
        train_from_sentences(many_sentences(), "bpe", 300, sample=30, seed=seed).checksum
        for seed in (0, 1)
    }
    assert len(sums) == 2


def test_the_default_normalization() -> None:
    assert default_normalization("sentencepiece", "en") == "english"
    assert default_normalization("wordpiece", "en-GB") == "english"
    assert default_normalization("sentencepiece", "ko") == "multilingual"
    assert default_normalization("sentencepiece", "enm") == "multilingual"
    assert default_normalization("sentencepiece", None) == "multilingual"
    assert default_normalization("bpe", "en") == "none"


def test_progress_counts_sentences() -> None:
    told: list[str] = []
    train_from_sentences(["a b c"] * 10_005, "bpe", 262, sample=10_001, progress=told.append)
    assert told[0] == "10,000 sentences read"
    assert told[1] == "training on 10,001 sentences, 0.1 MB: 0 s"


def test_a_sample_is_drawn_from_all_of_the_text() -> None:
    sentences = ["early"] * 900 + ["\u0437"] * 100
    made = train_from_sentences(sentences, "wordpiece", 15, "none", sample=100)
    assert {"\u0437", "early"} <= set(made.tokens)


def test_a_library_at_work_can_be_stopped() -> None:
    def told(text: str) -> None:
        if "training on" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_from_sentences(many_sentences(), "sentencepiece", 260, progress=told)


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_larger_than_the_text_supports(kind: str) -> None:
    with pytest.raises(
        SettingsError, match=r"vocab_size 90,000 is larger .* use at most"
    ) as caught:
        train_from_sentences(ENGLISH, kind, 90_000)
    largest = int(str(caught.value).split("at most ")[1].split(" ")[0].replace(",", ""))
    assert train_from_sentences(ENGLISH, kind, largest).vocab_size == largest


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_too_small_for_the_characters(kind: str) -> None:
    with pytest.raises(SettingsError, match="vocab_size 30 is too small"):
        train_from_sentences(many_sentences(), kind, 30)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [[], ["", "  \n"]])
def test_no_text(kind: str, text: list[str]) -> None:
    with pytest.raises(SettingsError, match="no text"):
        train_from_sentences(text, kind, 300)


def test_wrong_settings_are_named() -> None:
    for wrong, message in (
        ({"kind": "wordpeice"}, "did you mean 'wordpiece'"),
        ({"normalization": "soap"}, "normalization 'soap'"),
        ({"vocab_size": 0}, "vocab_size 0"),
        ({"sample": 0}, "sample 0"),
        ({"character_coverage": 2}, "coverage 2"),
    ):
        settings = {"kind": "bpe", "vocab_size": 300} | wrong
        with pytest.raises(SettingsError, match=message):
            train_from_sentences(ENGLISH, **settings)


def test_long_sentences_are_cut_and_not_dropped() -> None:
    text = " ".join([*many_sentences(), "zebra quiz"])
    assert len(text) > 8000
    tokenizer = train_from_sentences([text], "sentencepiece", 260, character_coverage=1.0)
    assert tokenizer.special.unk not in tokenizer.encode("zebra quiz")


def test_training_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    for kind in KINDS:
        train_from_sentences(many_sentences(), kind, 300)
    assert capfd.readouterr() == ("", "")


def test_the_reservoir_is_uniform_and_in_order() -> None:
    counts = dict.fromkeys("abcdefghij", 0)
    for seed in range(2000):
        sample = reservoir("abcdefghij", 3, seed)
        assert sample == sorted(sample)
        assert len(set(sample)) == 3
        for item in sample:
            counts[item] += 1
    assert all(520 < count < 680 for count in counts.values()), counts  # 600, four deviations
    assert reservoir("abc", 5, 0) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "normalization"),
    [
        ("배는 늦었지만 바다는 잔잔했다", "multilingual"),
        ("ガラスのパンダが好きです", "multilingual"),
        ("A café, naïve and calm 배", "english"),
    ],
)
def test_text_of_another_script_is_not_taken_apart(text: str, normalization: str) -> None:
    """Though nobody said its language: English normalization would destroy it."""
    made = train_from_sentences([text] * 50, "wordpiece", 20, language="en")
    assert made.normalization == normalization


@pytest.mark.parametrize(
    ("characters", "alphabet", "expected"),
    [
        (10**6, 60, 2_700),
        (4 * 10**7, 60, 8_200),  # about the demo's 8,000
        (3 * 10**9, 200, 30_000),  # ALBERT's
        (10**12, 200, 30_000),
        (10**6, 2_500, 7_800),  # Japanese needs room for its characters
        (10**6, 90_000, 30_000),
        (0, 1, 300),
    ],
)
def test_a_vocabulary_grows_with_its_text(characters: int, alphabet: int, expected: int) -> None:
    assert fitting_size(characters, alphabet) == expected


@pytest.mark.parametrize("kind", ["sentencepiece", "wordpiece", "bpe"])
def test_a_vocabulary_is_chosen_to_fit_the_text(kind: str) -> None:
    """Of a few lines the largest that can be had; asked for by number it is an error."""
    made = train_from_sentences(ENGLISH, kind)
    with pytest.raises(SettingsError, match=f"at most {made.vocab_size:,} tokens"):
        train_from_sentences(ENGLISH, kind, made.vocab_size + 1)
    alphabet = {character for sentence in many_sentences() for character in sentence}
    characters = sum(map(len, many_sentences()))
    chosen = train_from_sentences(many_sentences(), kind)
    assert chosen.vocab_size <= fitting_size(characters, len(alphabet))
