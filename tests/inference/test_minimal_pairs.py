"""Minimal pairs: pseudo-log-likelihoods against transformers, one mask at a time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

import litebert
from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.inference.minimal_pairs import evaluate_minimal_pairs
from litebert.inference.pseudo_likelihood import pseudo_likelihoods
from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from tests.corpus.stores import write_pieces

SENTENCES = ("s1 w3q w17q s2 w5q", "w9q w4q", "s3 w1q w2q w3q w4q w5q w6q w7q", "w8q s4 s5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with random weights, as transformers opens it."""
    where = tmp_path_factory.mktemp("pairs")
    tokenizer = load_tokenizer(write_pieces(where / "pieces"))
    config = EncoderConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=16, hidden_size=32, num_hidden_layers=3,
        num_attention_heads=4, intermediate_size=64, max_position_embeddings=40,
        initializer_range=0.3,
    )  # fmt: skip
    Model.create(config, ("masked_lm",), seed=3).save(where / "model", tokenizer=tokenizer)
    return where / "model"


def one_mask_at_a_time(model: torch.nn.Module, tokenizer: Tokenizer, text: str) -> list[float]:
    """Both sums by a forward pass of one sequence for every token, as one would write it down."""
    special, ids = tokenizer.special, tokenizer.encode(text)
    starts = [bool(tokenizer.word_starts[id]) or place == 0 for place, id in enumerate(ids)]
    sums = [0.0, 0.0]
    for place, id in enumerate(ids):
        word_end = place + 1
        while word_end < len(ids) and not starts[word_end]:
            word_end += 1
        for way, end in enumerate((place + 1, word_end)):
            masked = [special.mask if place <= i < end else one for i, one in enumerate(ids)]
            given = torch.tensor([[special.cls, *masked, special.sep]])
            with torch.no_grad():
                logits = model(input_ids=given).logits[0, place + 1]
            sums[way] += float(logits.log_softmax(-1)[id])
    return sums


def test_sums_are_those_of_one_mask_at_a_time_through_transformers(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    theirs = AutoModelForMaskedLM.from_pretrained(folder).eval()
    texts = [f"{text}{tail}" for text in SENTENCES for tail in ("", "xaaxab", " w2qxac")]
    ours = pseudo_likelihoods(litebert.load(folder), tokenizer, texts)
    assert {one.plain != one.word for one in ours} == {True, False}  # some words have two pieces
    for text, one in zip(texts, ours, strict=True):
        expected = one_mask_at_a_time(theirs, tokenizer, text)
        assert (one.plain, one.word) == pytest.approx(expected, abs=1e-4)
        assert one.tokens == len(tokenizer.encode(text))


def write_pairs(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path.parent


def test_accuracies_are_means_over_paradigms_and_by_phenomenon(
    folder: Path, tmp_path: Path
) -> None:
    model, tokenizer = litebert.load(folder), load_tokenizer(folder)
    score = {t: one.plain for t, one in zip(SENTENCES, pseudo_likelihoods(
        model, tokenizer, SENTENCES), strict=True)}  # fmt: skip
    ranked = sorted(score, key=lambda text: score[text])
    best, worst = ranked[-1], ranked[0]

    def row(good: str, bad: str, uid: str, term: str) -> dict:
        return {"sentence_good": good, "sentence_bad": bad, "UID": uid, "linguistics_term": term}

    data = tmp_path / "blimp"
    write_pairs(data / "a.jsonl", [row(best, worst, "a", "binding")] * 3)
    write_pairs(
        data / "b.jsonl", [row(worst, best, "b", "binding"), row(best, best, "b", "binding")]
    )
    write_pairs(data / "c.jsonl", [row(worst, best, "c", "islands")])
    report = litebert.evaluate(folder, blimp=data)
    assert report == evaluate_minimal_pairs(folder, data)
    assert (report.pairs, report.paradigms) == (6, 3)
    assert report.plain == pytest.approx((1 + 0.25 + 0) / 3)
    assert report.phenomena["binding"].plain.value == pytest.approx(3.5 / 5)
    assert report.phenomena["islands"].pairs == 1
    assert np.shape(report.correct) == (6, 2)
    assert "correct" not in report.as_dict()


def test_bad_pairs_are_told_with_file_and_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"holds no \.jsonl files"):
        litebert.evaluate(folder, blimp=tmp_path)
    good = {"sentence_good": "w1q", "sentence_bad": "w2q"}
    for bad in ({"sentence_good": "w1q"}, [], {**good, "sentence_bad": " "}, 3):
        (tmp_path / "x.jsonl").write_text(json.dumps(good) + "\n" + json.dumps(bad) + "\n")
        with pytest.raises(FormatError, match=r"x\.jsonl, line 2: no minimal pair"):
            litebert.evaluate(folder, blimp=tmp_path)
    write_pairs(tmp_path / "x.jsonl", [{**good, "sentence_good": "w1q " * 50}])
    with pytest.raises(SettingsError, match="positions for 40"):
        litebert.evaluate(folder, blimp=tmp_path)
    with pytest.raises(SettingsError, match="give --corpus STORE or --blimp"):
        litebert.evaluate(folder, blimp=tmp_path, corpus=tmp_path)
