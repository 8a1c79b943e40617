"""Downstream measures: what the data allows, in points, with pseudo-values; the rest is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from litebert.corpus.store import Store
from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.reproduction.downstream import BLIMP, MEAN, Downstream, common_tasks, with_mean
from litebert.reproduction.measurement import (
    Measurement,
    keep_measurements,
    read_measurements,
)
from litebert.reproduction.scale import SCALES
from tests.train.runs import write_store

WORDS = {"0": "w1q w2q w3q", "1": "w7q w8q w9q"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """An encoder whose tokens tell the labels apart."""
    tokenizer = Store([write_store(tmp_path / "text")]).tokenizer
    config = EncoderConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=16, hidden_size=32, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=32, max_position_embeddings=64,
        initializer_range=0.2,
    )  # fmt: skip
    Model.create(config, ("masked_lm",)).save(tmp_path / "seed-1" / "model", tokenizer=tokenizer)
    return tmp_path / "seed-1"


def write_data(folder: Path) -> Path:
    (folder / "glue" / "SST-2").mkdir(parents=True)
    rows = [f"{WORDS[label]} w{n}q\t{label}" for n in range(20, 40) for label in WORDS]
    for split in ("train", "dev"):
        text = "\n".join(["sentence\tlabel", *rows]) + "\n"
        (folder / "glue" / "SST-2" / f"{split}.tsv").write_text(text)
    (folder / "blimp").mkdir()
    pair = {"sentence_good": "w1q w2q", "sentence_bad": "w2q w1q", "UID": "order"}
    (folder / "blimp" / "order.jsonl").write_text((json.dumps(pair) + "\n") * 4)
    return folder


def test_what_is_there_is_measured_once_and_what_is_not_is_said(run: Path, tmp_path: Path) -> None:
    said: list[str] = []
    downstream = Downstream(write_data(tmp_path / "data"), SCALES["minutes"], said.append)
    assert downstream.missing == ["sts-b_frozen"]
    assert said[0].startswith("STS-B, frozen encoder is not measured: ")
    assert downstream.wanted({}) == ["sst-2_1000", "blimp"]
    for name in downstream.wanted({}):
        keep_measurements(run, downstream.measure(name, run))
    known = read_measurements(run)
    assert set(known) == {"sst-2_1000", *BLIMP}
    assert downstream.wanted(known) == []
    tuned = known["sst-2_1000"]
    assert tuned.value > 90
    assert np.mean(tuned.blocks) == pytest.approx(tuned.value)
    assert known["blimp"].value in (0.0, 100.0)
    tasks = common_tasks([known])  # BLiMP is no task that was trained for
    assert with_mean(known, tasks)[MEAN].value == tuned.value
    assert downstream.baselines({})["sst-2_1000"] > 90
    assert downstream.baselines(dict.fromkeys(downstream.opened, 0.0)) == {}


def test_means_are_of_the_tasks_that_all_runs_have() -> None:
    """A row that failed after some of its tasks is compared by these."""
    values = {"sst-2_1000": 70.0, "sts-b_frozen": 20.0, "masked_lm_accuracy": 5.0}
    whole = {name: Measurement(value, [value, value]) for name, value in values.items()}
    part = {"sst-2_1000": Measurement(71.0, [70.0, 72.0])}
    untouched = {"masked_lm_accuracy": Measurement(6.0, [6.0, 6.0])}  # failed before all tasks
    tasks = common_tasks([whole, part, untouched])
    assert tasks == ["sst-2_1000"]
    assert [with_mean(run, tasks)[MEAN].value for run in (whole, part)] == [70.0, 71.0]
    assert MEAN not in with_mean(untouched, tasks)
    assert with_mean(whole, common_tasks([whole, untouched]))[MEAN].value == 45.0
    assert common_tasks([untouched]) == []


def test_without_data_nothing_is_wanted() -> None:
    assert Downstream(None, SCALES["minutes"], print).wanted({}) == []


def test_a_score_that_is_no_mean_has_pseudo_values_too() -> None:
    values = np.random.default_rng(0).normal(5, 1, 60)
    found = Measurement.of_score(lambda chosen: float(np.median(values[chosen])), 60, 100.0)
    assert found.value == pytest.approx(100 * np.median(values))
    assert len(found.blocks) == 50
    ratio = Measurement.of_ratio([3, 4, 5], [5, 5, 10], 100.0)
    assert ratio.value == 60.0
    assert len(ratio.blocks) == 3
