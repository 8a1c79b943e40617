"""ALBERT-xxlarge (223M parameters) takes real training steps at length 512.

    python benchmarks/xxlarge_step.py [--batch 2] [--steps 2]

Activation checkpointing keeps only what enters each block. On two cores a step takes minutes.
"""

from __future__ import annotations

import argparse
import time

from litebert.base.runtime import keep_freed_memory, memory_peak


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], help="a setting of the preset")
    options = parser.parse_args()
    keep_freed_memory()
    from litebert.configs.load import load_preset
    from litebert.planning.memory import peak_memory
    from litebert.train.speed import SampleTraining, random_batches

    preset = load_preset("albert-xxlarge", ["activation_checkpointing=true", *options.set])
    planned = peak_memory(preset, options.batch, options.length, preset.precision, True)["total"]
    batches = random_batches(preset, options.batch, options.length)
    training = SampleTraining(preset, batches)
    count = sum(p.numel() for p in training.learner.parameters())
    print(f"{preset.title}, {count:,} parameters, {options.batch} x {options.length} tokens")
    for step in range(1, options.steps + 1):
        begin = time.perf_counter()
        losses = training.step().sums.means().loss
        told = ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items())
        print(
            f"step {step}: {told}, {time.perf_counter() - begin:.0f} s, "
            f"peak memory {memory_peak() / 1e9:.2f} GB (planned {planned / 1e9:.2f} GB)",
            flush=True,
        )


if __name__ == "__main__":
    main()
