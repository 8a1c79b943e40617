"""The engine from Python: every kind of input and answer, and what it refuses."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest

import litebert
from litebert.base.errors import FormatError, InputError, LitebertError, SettingsError
from litebert.inference.engine import Engine
from litebert.inference.predict import predict
from litebert.tasks.tagging import TextEntity
from tests.inference.engines import open_small, write_model
from tests.tasks.small import sentence

ASKED: dict[str, Any] = {
    "classify": sentence(1),
    "pair": (sentence(1), sentence(2)),
    "regress": sentence(1),
    "tag": "w1q w2q, (w3q).",
    "qa": {"question": sentence(1, 3), "passage": sentence(2, 20)},
    "choice": {"passage": sentence(3), "question": "w1q", "options": ["w2q", "w3q", "w4q"]},
}


@pytest.mark.parametrize("kind", ASKED)
def test_one_input_gives_one_answer_and_a_list_gives_a_list(kind: str, tmp_path: Path) -> None:
    engine, asked = open_small(tmp_path, kind), ASKED[kind]
    one = engine.predict(asked)
    many = engine.predict([asked, asked])
    submitted = engine.submit(asked).result(30)
    for other in (*many, submitted, engine.submit([asked]).result(30)[0]):
        assert type(other) is type(one)
        _same(other.to_json(), one.to_json())
    assert one.depth == 4
    engine.close()


def test_what_was_answered_is_not_kept_until_its_deadline(tmp_path: Path) -> None:
    engine = open_small(tmp_path, "classify")
    answered = engine.submit(sentence(1), deadline=3600)
    kept = ref(answered.result(30))
    engine.submit(sentence(2)).result(30)  # so that the worker is done with the first
    del answered
    gc.collect()
    assert kept() is None
    engine.close()


def _same(one: Any, other: Any) -> None:
    """Equal but for the id and rounding."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one.keys() - {"id"}:
            _same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            _same(*pair)
    elif isinstance(one, float):
        assert one == pytest.approx(other, abs=1e-5)
    else:
        assert one == other


def test_offsets_point_into_the_original_text(tmp_path: Path) -> None:
    text = "  W1q  w2q, (w3q)."
    found = open_small(tmp_path / "tag", "tag").predict(text)
    assert found.words == ("W1q", "w2q", ",", "(", "w3q", ")", ".")
    assert [text[a:b] for a, b in found.offsets] == list(found.words)
    tags = ("B-x", "I-x", "O", "O", "B-x", "O", "O")
    named = type(found)("0", tags, (), words=found.words, offsets=found.offsets)
    assert named.entities == (TextEntity("x", 2, 10), TextEntity("x", 13, 16))

    passage = "W0q,  w1q w2q w3q w4q"
    answer = open_small(tmp_path / "qa", "qa").predict({"question": "w1q", "passage": passage})
    assert answer.text
    assert passage[answer.start : answer.end] == answer.text
    assert all(passage[c.start : c.start + len(c.text)] == c.text for c in answer.candidates)
    assert 0 < answer.probability <= 1


def test_words_that_are_given_as_words(tmp_path: Path) -> None:
    engine = open_small(tmp_path, "tag")
    words = ("w1q", "w2q", "w3q")
    one = engine.predict(words)
    assert len(one.tags) == 3
    assert one.offsets == ()
    assert engine.predict([list(words), "w1q w2q"])[0].tags == one.tags
    assert engine.predict({"words": list(words)}).tags == one.tags


def test_what_a_pretrained_folder_can_be_asked(tmp_path: Path) -> None:
    engine = open_small(tmp_path, None)
    found = engine.fill_mask("w1q [MASK] w3q [MASK]", top=3)
    assert [("w1q [MASK] w3q [MASK]"[m.start : m.end]) for m in found.masks] == ["[MASK]"] * 2
    for mask in found.masks:
        chances = [candidate.probability for candidate in mask.candidates]
        assert len(chances) == 3
        assert chances == sorted(chances, reverse=True)
    order = engine.order("w1q w2q", "w3q")
    assert order.in_order == (order.probability >= 0.5)
    assert engine.embed("w1q").shape == (32,)
    vectors = engine.embed(["w1q", "w2q w3q"], normalize=True)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    again = engine.run("order", [("w1q w2q", "w3q")] * 2)[1]
    assert again.probability == pytest.approx(order.probability)


def test_several_texts_are_masked_apart(tmp_path: Path) -> None:
    engine = open_small(tmp_path, None)
    texts = ["w1q [MASK]", "[MASK] w2q w5q [MASK]", "w3q [MASK] w4q"]
    together = engine.fill_mask(texts)
    for text, found in zip(texts, together, strict=True):
        alone = engine.fill_mask(text)
        assert len(found.masks) == text.count("[MASK]")
        for one, other in zip(alone.masks, found.masks, strict=True):
            assert [c.token for c in one.candidates] == [c.token for c in other.candidates]


REFUSED: dict[str, list[tuple[Any, str]]] = {
    "classify": [
        ("", "the input is empty"),
        (["w1q", " \n"], "input 2 of 2 is empty"),
        ([], "no input in the list"),
        (3, "not a text but int"),
        (("a", "b", "c"), "3 texts; a pair has two"),
        ({"txet": "w1q"}, "no field 'txet'; did you mean 'text'"),
        ("w1q \ud800", "character 4 is half of a surrogate pair"),
    ],
    "pair": [("w1q", "the model compares two"), (("w1q", ""), "second text is empty")],
    "tag": [((), "expected a text, or words"), (("w1q", ""), "word 2 is empty")],
    "qa": [
        ("w1q", 'expected {"question": ..., "passage": ...}, not str'),
        ({"question": "w1q"}, "the field 'passage' is missing"),
        ({"question": "w1q", "passage": " "}, "passage is empty"),
    ],
    "choice": [
        ({"question": "w1q", "options": ["w2q"] * 4}, "4 options; the model chooses among 3"),
        ({"question": "w1q", "options": ["w2q", "", "w3q"]}, "option 2 is empty"),
        ({"question": "w1q", "options": "w2q"}, "list of two or more"),
        ({"options": ["w2q", "w3q", "w4q"]}, "neither a question nor a passage"),
    ],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_bad_input_is_one_sentence(kind: str, tmp_path: Path) -> None:
    engine = open_small(tmp_path, kind)
    for asked, message in REFUSED[kind]:
        for call in (engine.predict, engine.submit):
            with pytest.raises(InputError) as caught:
                call(asked)
            assert message in str(caught.value)
            assert "\n" not in str(caught.value)


def test_settings_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = write_model(tmp_path / "start", None)
    engine = Engine(start, precision="fp32")
    with pytest.raises(SettingsError, match="not fine-tuned, so there is nothing to predict"):
        engine.predict("w1q")
    for text, message in (("w1q", "has no \\[MASK\\]"), ("[MASK]" + " w1q" * 70, "73 tokens")):
        with pytest.raises(InputError, match=message):
            engine.fill_mask(text)
    with pytest.raises(SettingsError, match="top 0"):
        engine.fill_mask("[MASK]", top=0)
    with pytest.raises(InputError, match="has 73 tokens"):
        engine.order("w1q " * 40, "w2q " * 30)
    with pytest.raises(SettingsError, match="ask 'summarize'"):
        engine.submit("w1q", ask="summarize")
    tuned = write_model(tmp_path / "tuned", sharing="none")
    for options, message in (
        ({"depth": 0}, "depth 0: an encoder runs at least one layer"),
        ({"depth": 5}, "depth 5: this encoder has 4 layers of its own"),
        ({"exit": "patience=2"}, "no exit heads"),
        ({"precision": "fp8"}, "choose auto, fp32, bf16 or int8"),
        ({"threads": 0}, "threads 0"),
    ):
        with pytest.raises(SettingsError, match=message):
            Engine(tuned, **{"precision": "fp32", **options})
    with pytest.raises(SettingsError, match="no masked_lm head"):
        Engine(tuned, precision="fp32").fill_mask("[MASK]")
    monkeypatch.setattr("litebert.inference.kernels.has_fast_bf16", lambda device: False)
    with pytest.raises(SettingsError, match="slower than fp32 on this machine"):
        Engine(tuned, precision="bf16")
    monkeypatch.setattr("litebert.inference.kernels.engines", lambda: {"qnnpack"})
    with pytest.raises(SettingsError, match="precision int8: needs an x86 CPU"):
        Engine(tuned, precision="int8")
    with pytest.raises(LitebertError, match="no such model folder"):
        Engine(tmp_path / "nowhere")


def test_texts_beyond_the_positions_are_the_callers_choice(tmp_path: Path) -> None:
    engine = open_small(tmp_path)
    long, short = sentence(1, 150), sentence(2)
    cut = engine.predict(long)
    assert engine.predict(long, overflow="truncate") == cut
    assert engine.job("predict", [long, short]).truncated == 1
    assert engine.predict(long, overflow="stride").probabilities != cut.probabilities
    with pytest.raises(InputError, match="1 of 2 inputs has more than the model's 60 tokens"):
        engine.predict([long, short], overflow="error")
    assert engine.predict([short, short], overflow="error")
    with pytest.raises(SettingsError, match="overflow 'cut'"):
        engine.predict(short, overflow="cut")
    with pytest.raises(InputError, match="the input has 152 tokens"):
        engine.embed(long, overflow="error")


def test_depth_is_a_dial_of_shared_encoders(tmp_path: Path) -> None:
    engine = open_small(tmp_path)
    found = {depth: engine.predict(sentence(1), depth=depth) for depth in (1, 4, 9)}
    assert [one.depth for one in found.values()] == [1, 4, 9]
    assert len({one.probabilities["yes"] for one in found.values()}) == 3
    shallow = Engine(engine.folder, precision="fp32", depth=1).predict(sentence(1))
    assert shallow == found[1]


def test_files_say_what_the_engine_says(tmp_path: Path) -> None:
    engine = open_small(tmp_path)
    texts = [sentence(number, 1 + number) for number in range(30)]
    table = tmp_path / "new.csv"
    table.write_text("text\n" + "\n".join(texts) + "\n")
    said = predict(tmp_path / "model", table, precision="fp32")
    for one, other in zip(said, engine.predict(texts), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)
        assert one.depth is None
    assert predict(tmp_path / "model", table, precision="fp32", depth=2)[0].depth == 2


def test_a_run_is_opened_by_its_folder(tmp_path: Path) -> None:
    write_model(tmp_path)
    assert "classification" in litebert.load(tmp_path).heads
    assert litebert.load(tmp_path / "model").labels == ("no", "yes")
    with pytest.raises(FormatError, match="expected a table"):
        _broken_task(tmp_path)


def _broken_task(folder: Path) -> None:
    model = litebert.load(folder)
    model.metadata["litebert_task"] = "classify"
    model.save(folder / "broken", tokenizer=folder / "tokenizer")
    Engine(folder / "broken")
