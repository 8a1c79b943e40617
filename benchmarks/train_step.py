"""One training step, Hugging Face's AlbertForPreTraining against ours, in one run, alternating.

    python benchmarks/train_step.py                     all shapes, some five minutes
    python benchmarks/train_step.py --shape mini:32x128 --seconds 20

Each side is a process of its own, so that its peak memory is its own; the parent lets them step in
turn, so that a noisy machine is noisy for both. Same weights, same batch (15 % masked + sentence
order), AdamW with bias correction on fp32 weights, all dropouts 0, no clipping, no micro-batching,
no checkpointing. Ours takes the step of `pretrain`, on packed sequences. The first losses
must agree, or the work is not the same. Ratios are of median step times; > 1 means ours is faster.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SHAPES = ("base:8x512", "base:32x128", "mini:32x128")
PRESETS = {"base": "albert-base-v2", "mini": "albert-mini", "tiny": "albert-tiny"}
NO_DROPOUT = ["model.hidden_dropout_prob=0.0", "model.attention_probs_dropout_prob=0.0",
              "model.classifier_dropout_prob=0.0"]  # fmt: skip
ADAMW = ["optimizer.name=adamw", "optimizer.bias_correction=true", "optimizer.weight_decay=0.01",
         "optimizer.betas=[0.9, 0.999]", "optimizer.eps=1e-8",
         "optimizer.gradient_clipping=0"]  # fmt: skip
LONG_STEP = 120.0  # a side whose steps take longer is timed by its first step alone


# ------------------------------------------------------------------------------- the two sides


def huggingface_side(folder: str, batch: int, length: int, precision: str) -> Any:
    """A function that takes one step and returns the loss."""
    import torch
    from transformers import AlbertForPreTraining

    from litebert.train.speed import LEARNING_RATE

    model = AlbertForPreTraining.from_pretrained(folder).train()
    columns = padded_columns(folder_preset(folder), batch, length)
    inputs = {name: torch.from_numpy(column).long() for name, column in columns.items()}
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01,
        fused=True,
    )  # fmt: skip

    def step() -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = model(**inputs).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def padded_columns(preset: str, batch: int, length: int) -> dict[str, Any]:
    """Our random batch as `transformers` wants it."""
    import numpy as np

    from litebert.configs.load import load_preset
    from litebert.train.speed import random_batch

    packed = random_batch(load_preset(preset).model, batch, length)
    labels = np.full(len(packed.ids), -100)
    labels[packed.positions] = packed.targets
    return {
        "input_ids": packed.ids.reshape(batch, length),
        "token_type_ids": packed.token_types.reshape(batch, length),
        "labels": labels.reshape(batch, length),
        "sentence_order_label": packed.labels,
    }


def litebert_side(folder: str, batch: int, length: int, precision: str) -> Any:
    """A function that takes one step and returns the loss."""
    from litebert.base.runtime import keep_freed_memory

    keep_freed_memory()
    import litebert
    from litebert.train.speed import SampleTraining, random_batches

    whole = [f"data.micro_batch_tokens={batch * length}", f"precision={precision}"]
    preset = litebert.load_preset(folder_preset(folder), [*NO_DROPOUT, *ADAMW, *whole])
    training = SampleTraining(preset, random_batches(preset, batch, length))
    training.learner.model.load_state_dict(litebert.load(folder).state_dict())

    def step() -> float:
        losses = training.step().sums.means().loss.values()
        return sum(loss for loss in losses if loss is not None)

    return step


def folder_preset(folder: str) -> str:
    """The benchmark names the weights' folder after the preset."""
    return Path(folder).name


def worker(side: str, folder: str, batch: int, length: int, precision: str) -> None:
    """Take a step for every line on standard input; answer with seconds, loss and peak memory."""
    from litebert.base.runtime import memory_peak

    make = huggingface_side if side == "huggingface" else litebert_side
    step = make(folder, batch, length, precision)
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        loss = step()
        seconds = time.perf_counter() - begin
        print(json.dumps({"seconds": seconds, "loss": loss, "peak": memory_peak()}), flush=True)


# ------------------------------------------------------------------------------- the parent


class Side:
    """One process, stepped from here."""

    def __init__(self, side: str, precision: str, folder: Path, batch: int, length: int) -> None:
        self.name = f"{side} {precision}"
        command = [sys.executable, __file__, "--worker", side, str(folder), str(batch), str(length)]
        self.process = subprocess.Popen(
            [*command, precision], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.answers: list[dict[str, float]] = []
        self._read()

    def _read(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name}: stopped (out of memory?)")
        return json.loads(line)

    def step(self) -> float:
        assert self.process.stdin
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        self.answers.append(self._read())
        return self.answers[-1]["seconds"]

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()

    @property
    def times(self) -> list[float]:
        """Without the warmup step, unless there is nothing else."""
        times = [answer["seconds"] for answer in self.answers]
        return times[1:] or times

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def peak(self) -> float:
        return self.answers[-1]["peak"]


def matrix_rate(dtype_name: str) -> float:
    """GFLOP/s of one product of the shape that dominates a base layer."""
    import torch

    dtype = getattr(torch, dtype_name)
    a, b = torch.randn(1024, 768).to(dtype), torch.randn(3072, 768).to(dtype)
    times: list[float] = []
    while sum(times) < 2.0:
        begin = time.perf_counter()
        torch.mm(a, b.t())
        times.append(time.perf_counter() - begin)
    return 2 * 1024 * 768 * 3072 / min(times) / 1e9


def run_shape(shape: str, seconds: float, sides: list[tuple[str, str]]) -> dict[str, Side]:
    """Alternate the sides until each fast one has used up its time."""
    from litebert.configs.load import load_preset
    from litebert.model.model import Model

    size, _, grid = shape.partition(":")
    batch, length = (int(n) for n in grid.split("x"))
    preset = load_preset(PRESETS[size], NO_DROPOUT)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / PRESETS[size]
        Model.create(preset.model, preset.heads, seed=0).save(folder)
        running = [Side(side, precision, folder, batch, length) for side, precision in sides]
        spent = {side.name: 0.0 for side in running}
        active = list(running)
        while active:
            for side in list(active):
                spent[side.name] += side.step()
                slow = side.answers[0]["seconds"] > LONG_STEP
                if slow or (len(side.answers) > 3 and spent[side.name] > seconds):
                    active.remove(side)
        for side in running:
            side.close()
    return {side.name: side for side in running}


def report(shape: str, sides: dict[str, Side], rates: dict[str, float]) -> dict[str, Any]:
    from litebert.configs.load import load_preset
    from litebert.planning.count import TRAINING_PASSES, flops_per_token

    size, _, grid = shape.partition(":")
    batch, length = (int(n) for n in grid.split("x"))
    ours = next(side for name, side in sides.items() if name.startswith("litebert"))
    flops = TRAINING_PASSES * sum(flops_per_token(load_preset(PRESETS[size]), length).values())
    rate = rates["bf16" if ours.name.endswith("bf16") else "fp32"]
    fraction = flops * batch * length / ours.median / 1e9 / rate
    print(f"\n{shape}")
    rows = {}
    for name, side in sides.items():
        speed, first = side.median / ours.median, side.answers[0]["loss"]
        assert abs(first - ours.answers[0]["loss"]) < 0.02, (name, first, ours.answers[0]["loss"])
        memory = ours.peak / side.peak
        rows[name] = {"tokens_per_second": batch * length / side.median, "peak": side.peak,
                      "steps": len(side.times), "ours_faster": speed,
                      "our_memory": memory}  # fmt: skip
        print(
            f"  {name:18} {batch * length / side.median:9,.0f} tokens/s"
            f"  peak {side.peak / 1e9:5.2f} GB"
            f"  ours is {speed:5.2f}x as fast with {memory:4.0%} of the memory"
            f"  ({len(side.times)} steps, first loss {first:.4f})"
        )
    print(f"  ours does {fraction:.0%} of the measured matrix-product rate ({rate:.0f} GFLOP/s)")
    return {"shape": shape, "fraction_of_matrix_rate": fraction, "sides": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shape", action="append", help=f"SIZE:BxT; default: {', '.join(SHAPES)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="per side and shape")
    parser.add_argument(
        "--emulate-bf16",
        action="store_true",
        help="Hugging Face in bf16 also where the hardware lacks it: minutes a step",
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        side, folder, batch, length, precision = options.worker
        worker(side, folder, int(batch), int(length), precision)
        return
    import torch

    from litebert.base.runtime import has_fast_bf16, resolve_precision

    cpu = torch.device("cpu")
    rates = {"fp32": matrix_rate("float32"), "bf16": matrix_rate("bfloat16")}
    print(
        f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, "
        f"torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}); matrix products: "
        f"fp32 {rates['fp32']:.0f}, bf16 {rates['bf16']:.0f} GFLOP/s; "
        f"bf16 in hardware: {'yes' if has_fast_bf16(cpu) else 'no, so ours runs in fp32'}"
    )
    sides = [("litebert", resolve_precision("auto", cpu)), ("huggingface", "fp32")]
    if has_fast_bf16(cpu) or options.emulate_bf16:
        sides.append(("huggingface", "bf16"))
    results = [
        report(shape, run_shape(shape, options.seconds, sides), rates)
        for shape in options.shape or SHAPES
    ]
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
