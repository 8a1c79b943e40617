"""Pretraining as a whole, `litebert.pretrain` against Hugging Face's Trainer, on real text.

    python benchmarks/pretrain.py [--corpus STORE] [--malloc]         both shapes: about an hour
    python benchmarks/pretrain.py --shape mini:32x128 --steps 60 --rounds 2

Data, steps, a log line every 10 steps and one checkpoint, as a user has them. Both sides see the
same segments of the same text in the same order and batches, with dropouts 0 and fused AdamW on
fp32 weights. The peer is AlbertForPreTraining in the Trainer; its collator masks single tokens,
80/10/10, and pads to the longest; ours masks n-grams. Every run is a fresh process, so that its
peak memory is its own, and the sides take turns, so that a noisy machine is noisy for both. Speed
is in real tokens, without padding, over the steps after the warmup, the checkpoint included.

Bars: 2.5x the Trainer in fp32 and 1.3x the Trainer in bf16, 3 % of our time for data, 40 % of the
memory of the Trainer in bf16. On the CPU, as memory is the process's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import texts

PRESETS = {"base": "albert-base", "mini": "albert-mini", "tiny": "albert-tiny"}
STEPS = {"base:8x512": 24, "mini:32x128": 60}
LOG_EVERY = 10
RATE = 1e-4
SPEED_BARS = {"fp32": 2.5, "bf16": 1.3}
DATA_BAR, MEMORY_BAR = 0.03, 0.40


@dataclass(frozen=True)
class Work:
    """What every side does, as the worker processes are told."""

    preset: str
    batch: int
    length: int
    steps: int
    warmup: int  # steps that are not timed
    corpus: str
    folder: str  # holds the peer's config.json and segments.npz

    @property
    def log_every(self) -> int:
        return min(LOG_EVERY, max(self.steps // 3, 1))

    @property
    def checkpoint_at(self) -> int:
        """The middle of the timed stretch, and more than half of all, so that there is one."""
        return (self.warmup + self.steps) // 2 + 1

    @property
    def overrides(self) -> list[str]:
        """The preset's settings that make both sides do the same."""
        return [
            f"budget={self.steps}steps",
            "model.hidden_dropout_prob=0.0",
            "model.attention_probs_dropout_prob=0.0",
            "model.classifier_dropout_prob=0.0",
            f"data.max_length={self.length}",
            f"data.batch_size={self.batch}",
            "data.batch_by=sequences",
            "optimizer.name=adamw",
            f"optimizer.learning_rate={RATE}",
            "optimizer.reference_batch_size=0",
            "optimizer.betas=[0.9, 0.999]",
            "optimizer.bias_correction=true",
            "evaluation.every=1.0",
            f"checkpoint.every={self.checkpoint_at}",
            f"log.every={self.log_every}",
        ]


@dataclass(frozen=True)
class Side:
    """One of the two programs, in one of its modes."""

    program: str
    precision: str
    malloc: bool = False

    @property
    def name(self) -> str:
        return f"{self.program} {self.precision}" + (" + our malloc" if self.malloc else "")


# ------------------------------------------------------------------------------- the two sides


def run_litebert(work: Work) -> dict[str, Any]:
    """Train; say how long the timed steps took, and what was in them."""
    import litebert
    from litebert.train.callbacks import Callback, RunStarted
    from litebert.train.metrics import TrainingMetrics, read_metrics

    times: list[float] = []
    begin_peaks: list[int] = []

    class Stopwatch(Callback):
        def on_start(self, run: RunStarted) -> None:
            begin_peaks.append(memory_peak())

        def on_step(self, step: int, progress: float) -> None:
            times.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "run"
        made = litebert.pretrain(
            work.preset, work.corpus, out, overrides=work.overrides, callbacks=[Stopwatch()]
        )
        lines = [line for line in read_metrics(out) if isinstance(line, TrainingMetrics)]
    timed = [line for line in lines if line.step - work.log_every >= work.warmup] or lines
    return {
        "seconds": times[-1] - times[work.warmup - 1],
        "tokens": made.tokens,
        "begin_peak": begin_peaks[0],
        "data": sum(line.time.data_fraction for line in timed) / len(timed),
        "loss": sum(loss for loss in lines[0].loss.values() if loss is not None),
    }


def run_huggingface(work: Work, precision: str, malloc: bool) -> dict[str, Any]:
    """The same with the Trainer."""
    if malloc:
        from litebert.base.runtime import keep_freed_memory

        keep_freed_memory()
    import numpy as np
    from transformers import PrinterCallback, Trainer, TrainerCallback

    import peer

    times: list[float] = []
    begin_peaks: list[int] = []

    class Stopwatch(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            begin_peaks.append(memory_peak())

        def on_step_end(self, *_: Any, **__: Any) -> None:
            times.append(time.perf_counter())

    folder = Path(work.folder)
    with np.load(folder / "segments.npz") as arrays:
        segments: Any = peer.Segments(dict(arrays))
    collate = peer.TheirMasks(Path(work.corpus) / "tokenizer")
    with tempfile.TemporaryDirectory() as scratch:
        arguments = peer.training_arguments(
            Path(scratch), precision, RATE, work.batch, max_steps=work.steps, warmup_steps=0.025,
            save_steps=work.checkpoint_at, train_sampling_strategy="sequential", adam_epsilon=1e-6,
            logging_steps=work.log_every,
        )  # fmt: skip
        trainer = Trainer(
            peer.new_model(folder), arguments, train_dataset=segments, data_collator=collate,
            callbacks=[Stopwatch()],
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        assert (Path(scratch) / f"checkpoint-{work.checkpoint_at}").exists()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    return {
        "seconds": times[-1] - times[work.warmup - 1],
        "tokens": collate.tokens,
        "begin_peak": begin_peaks[0],
        "loss": losses[0],
    }


def worker(text: str) -> None:
    """One run, told in JSON; the last line on standard output is its outcome."""
    told = json.loads(text)
    work, side = Work(**told["work"]), Side(**told["side"])
    if side.program == "litebert":
        outcome = run_litebert(work)
    else:
        outcome = run_huggingface(work, side.precision, side.malloc)
    print(json.dumps({**outcome, "peak": memory_peak()}), flush=True)


def memory_peak() -> int:
    """Bytes, as litebert.base.runtime has it; the peer's process should hold nothing of ours."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


# ------------------------------------------------------------------------------- the parent


def run(work: Work, side: Side) -> dict[str, Any]:
    """A fresh process for one side."""
    told = json.dumps({"work": asdict(work), "side": asdict(side)})
    done = subprocess.run(
        [sys.executable, __file__, "--worker", told],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    if done.returncode:
        sys.exit(f"{side.name}: stopped with code {done.returncode} (out of memory?)")
    return json.loads(done.stdout.splitlines()[-1])


def write_segments(work: Work) -> tuple[int, int, float]:
    """The peer's files; returns all tokens, those of the timed steps, and how much is padding."""
    import numpy as np

    import litebert
    import peer
    from litebert.train.build import fit_to_corpus
    from litebert.train.stages import resolve_stages

    store = litebert.open_store(work.corpus)
    preset = fit_to_corpus(litebert.load_preset(work.preset, work.overrides), store)
    loader = litebert.Loader(store, resolve_stages(preset)[0].loading)
    batches = [peer.columns(next(loader)) for _ in range(work.steps)]
    joined = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    np.savez(Path(work.folder) / "segments.npz", **joined)  # type: ignore[arg-type]
    peer.write_config(preset, Path(work.folder))
    counts = [int(batch["lengths"].sum()) for batch in batches]
    return sum(counts), sum(counts[work.warmup :]), loader.statistics.padding_fraction


def measure(work: Work, sides: list[Side], rounds: int) -> dict[str, Any]:
    """All sides in turn, several times."""
    total, timed, padding = write_segments(work)
    print(
        f"\n{work.preset} {work.batch}x{work.length}: {work.steps} steps, {work.warmup} of them "
        f"not timed, {rounds} round(s); the peer's batches are {padding:.0%} padding",
        flush=True,
    )
    runs: dict[str, list[dict[str, Any]]] = {side.name: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            outcome = run(work, side)
            assert outcome["tokens"] == total, (side.name, outcome["tokens"], total)
            outcome["tokens_per_second"] = timed / outcome["seconds"]
            runs[side.name].append(outcome)
    return {"shape": f"{work.preset} {work.batch}x{work.length}", "padding": padding, "sides": runs}


def mean_speed(runs: list[dict[str, Any]]) -> float:
    """Tokens of all rounds over their seconds; each round has the same tokens."""
    return len(runs) / sum(1 / run["tokens_per_second"] for run in runs)


def report(found: dict[str, Any], sides: list[Side]) -> None:
    """One ratio a line."""
    speeds = {name: mean_speed(runs) for name, runs in found["sides"].items()}
    peaks = {name: max(run["peak"] for run in runs) for name, runs in found["sides"].items()}
    for name, runs in found["sides"].items():
        rounds = ", ".join(f"{run['tokens_per_second']:,.0f}" for run in runs)
        print(
            f"  {name:30} {speeds[name]:9,.0f} tokens/s  ({rounds})  "
            f"peak {peaks[name] / 1e9:5.2f} GB ({runs[0]['begin_peak'] / 1e9:.2f} before the first "
            f"step)  first losses {runs[0]['loss']:.2f}"
        )
    ours, *peers = sides
    for side in peers:
        bar = f"bar {SPEED_BARS[side.precision]}x" if not side.malloc else "no bar"
        speed = speeds[ours.name] / speeds[side.name]
        print(f"  speed against {side.name}: {speed:.2f}x ({bar})")
    for side in peers:
        bar = (
            f"bar {MEMORY_BAR:.0%}"
            if side.precision == "bf16"
            else f"bar {MEMORY_BAR:.0%} of bf16's"
        )
        print(f"  memory against {side.name}: {peaks[ours.name] / peaks[side.name]:.0%} ({bar})")
    fraction = max(run["data"] for run in found["sides"][ours.name])
    print(f"  fraction of our time for data: {fraction:.2%} (bar {DATA_BAR:.0%})", flush=True)


def choose_sides(options: argparse.Namespace) -> list[Side]:
    """Ours in its own precision; the peer in fp32, and in bf16 where that makes sense."""
    import torch

    from litebert.base.runtime import has_fast_bf16, resolve_precision

    cpu = torch.device("cpu")
    precisions = ["fp32"]
    if has_fast_bf16(cpu) or options.bf16:
        precisions.append("bf16")
    else:
        print(
            "The peer in bf16 is left out: this processor has no bf16 matrix products, and "
            "emulated ones are slower than fp32 (--bf16 runs it all the same)"
        )
    mallocs = (False, True) if options.malloc else (False,)
    theirs = [Side("huggingface", kind, malloc) for malloc in mallocs for kind in precisions]
    return [Side("litebert", resolve_precision("auto", cpu)), *theirs]


def describe_machine() -> str:
    import torch
    import transformers

    return (
        f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, "
        f"torch {torch.__version__}, transformers {transformers.__version__}"
    )


def work_for(shape: str, options: argparse.Namespace, corpus: str, scratch: Path) -> Work:
    size, _, grid = shape.partition(":")
    batch, length = (int(number) for number in grid.split("x"))
    steps = options.steps or STEPS.get(shape, 60)
    folder = scratch / shape.replace(":", "-")
    folder.mkdir()
    return Work(PRESETS[size], batch, length, steps, max(steps // 6, 1), corpus, str(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    texts.add_options(parser)
    parser.add_argument("--corpus", help="a prepared store, instead of preparing one")
    parser.add_argument("--shape", action="append", help=f"SIZE:BxT; default: {', '.join(STEPS)}")
    parser.add_argument("--steps", type=int, help="default: 24 for base, 60 for others")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each side")
    parser.add_argument(
        "--bf16", action="store_true", help="the peer in bf16 also where the hardware lacks it"
    )
    parser.add_argument(
        "--malloc",
        action="store_true",
        help="also the peer with our setting of malloc, which Hugging Face does not make",
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker)
        return
    print(describe_machine())
    sides, results = choose_sides(options), []
    with tempfile.TemporaryDirectory() as folder:
        corpus = options.corpus or str(texts.prepare_corpus(options, Path(folder)))
        for shape in options.shape or STEPS:
            work = work_for(shape, options, corpus, Path(folder))
            results.append(measure(work, sides, options.rounds))
            report(results[-1], sides)
            if options.json:
                options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
