"""The whole road on real text: tokenizer, corpus, pretraining, evaluation, transformers.

Every shipped preset, shrunk to seconds (of those that are alike then, one), with the tokenizer of
its family, on film reviews.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import transformers

import litebert
from litebert.demos.reviews import reviews_file
from litebert.train.evaluate import HeldOutReport
from litebert.train.metrics import read_metrics

REVIEWS = 400
KINDS = {"albert": "sentencepiece", "bert": "wordpiece", "roberta": "bpe", "electra": "wordpiece"}
SMALL = [
    "model.hidden_size=48", "model.num_hidden_layers=2", "model.num_attention_heads=2",
    "model.intermediate_size=96", "data.batch_size=16", "data.max_length=48",
    "optimizer.reference_batch_size=0", "log.every=5",
    "evaluation.sequences=64", "evaluation.every=0.5",
]  # fmt: skip
GENERATOR = [
    "generator.hidden_size=32", "generator.num_attention_heads=1",
    "generator.intermediate_size=64",
]  # fmt: skip
STAGES = "stages=[{fraction=0.5, max_length=32}, {fraction=0.5, max_length=48}]"
STEPS = 60


def reviews(folder: Path) -> Path:
    """Some film reviews as JSON lines, read from the package's file."""
    text = folder / "reviews.jsonl"
    with reviews_file().open(newline="", encoding="utf-8") as rows, text.open("w") as out:
        long = (row["text"] for row in csv.DictReader(rows) if len(row["text"]) > 600)
        for _, review in zip(range(REVIEWS), long, strict=False):
            out.write(json.dumps({"text": review}) + "\n")
    return text


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A corpus for each kind of tokenizer."""
    folder = tmp_path_factory.mktemp("reviews")
    text, made = reviews(folder), {}
    for kind in sorted(set(KINDS.values())):
        tokenizer, made[kind] = folder / f"{kind}-tokenizer", folder / kind
        litebert.train_tokenizer([str(text)], tokenizer, kind=kind, vocab_size=1000)
        litebert.prepare([str(text)], tokenizer, made[kind], held_out=0.1, num_workers=1)
    return made


def shrunk(name: str) -> list[str]:
    """Settings that make a preset tiny and its learning rate fit for a handful of steps."""
    preset = litebert.load_preset(name)
    factorised = preset.model.embedding_size != preset.model.hidden_size
    rate = 0.01 if preset.optimizer.name == "lamb" else 0.003
    return [
        *SMALL,
        f"model.embedding_size={32 if factorised else 48}",
        f"optimizer.learning_rate={rate}",
        "schedule.warmup=0.1",
        *(GENERATOR if preset.generator else []),
        *([STAGES] if preset.stages else []),
    ]


def held_out_loss(run: Path, corpus: Path) -> float:
    """Of masked LM."""
    report = litebert.evaluate(run, corpus=corpus, sequences=64)
    assert isinstance(report, HeldOutReport)
    return report.objectives["masked_lm"].loss


def different() -> list[str]:
    """The presets that are still different when they are tiny: of like ones the first."""
    found: dict[str, str] = {}
    for name in litebert.presets():
        preset = litebert.load_preset(name, shrunk(name))
        found.setdefault(preset.model_dump_json(exclude={"title", "budget"}), name)
    return list(found.values())


@pytest.mark.parametrize("name", different())
def test_every_preset_learns_and_opens_in_transformers(
    name: str, corpora: dict[str, Path], tmp_path: Path
) -> None:
    preset = litebert.load_preset(name)
    corpus, run = corpora[KINDS[preset.model.family]], tmp_path / "run"
    result = litebert.pretrain(name, corpus, run, budget=f"{STEPS}steps", overrides=shrunk(name))
    assert result.finished
    assert result.step == STEPS
    training = [line for line in read_metrics(run) if line.kind == "training"]
    for objective in training[0].loss:
        if objective in ("masked_lm", "span_boundary", "replaced_token"):
            first, last = (line.loss[objective] for line in (training[0], training[-1]))
            assert first is not None
            assert last is not None
            assert last < first - 0.05, f"{objective}: {first} to {last}"
    assert held_out_loss(run, corpus) < training[0].loss["masked_lm"]
    named = json.loads((run / "model" / "config.json").read_text())["architectures"][0]
    opened, info = getattr(transformers, named).from_pretrained(
        run / "model", output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    ours = litebert.load_tokenizer(run / "model")
    theirs = transformers.AutoTokenizer.from_pretrained(run / "model")
    assert theirs.encode("A dull film.", add_special_tokens=False) == ours.encode("A dull film.")
    assert opened.config.vocab_size == ours.vocab_size
    encoder = litebert.load(run / "model").sentence_encoder
    assert encoder is not None
    assert encoder.max_length is not None
    assert "held-out accuracy" in (run / "model" / "README.md").read_text()


def test_a_run_goes_on_from_a_run_and_from_transformers(
    corpora: dict[str, Path], tmp_path: Path
) -> None:
    """Domain adaptation: `--from` starts where the other stopped."""
    corpus, overrides = corpora["sentencepiece"], shrunk("albert-tiny")
    first = litebert.pretrain(
        "albert-tiny", corpus, tmp_path / "a", budget="40steps", overrides=overrides
    )
    reached = held_out_loss(first.folder, corpus)
    foreign = tmp_path / "foreign"
    model = transformers.AutoModelForPreTraining.from_pretrained(first.folder / "model")
    model.save_pretrained(foreign)
    for start in (first.folder, foreign):
        out = tmp_path / f"from-{start.name}"
        litebert.pretrain(
            "albert-tiny", corpus, out, budget="2steps", start_from=start,
            overrides=[*overrides, "optimizer.learning_rate=1e-6", "log.every=1"],
        )  # fmt: skip
        assert held_out_loss(out, corpus) == pytest.approx(reached, abs=1e-3)
