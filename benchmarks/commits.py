"""The whole loop of `litebert pretrain`, another commit against this one, in one run, alternating.

    git worktree add --detach ../before COMMIT
    python benchmarks/commits.py ../before [--corpus STORE] [--case albert-tiny:600ktok]

Each round runs both sides in processes of their own, as a user would start them: data, masks,
steps, log lines, a checkpoint. Tokens a second are those between the first line of metrics.jsonl
(the start is not counted) and the last; ratios are of the tokens and seconds of all rounds
together, once by the clock and once by the processor's time, which other work on the machine
changes little (with OMP_NUM_THREADS=1, as threads also wait in it). The held-out losses at the end
stand beside them, so that a side that is fast because it learns less is seen; peak memory, too.

Bars: albert-tiny 1.5x, albert-mini 1.2x, against the commit before the step was made faster.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import texts

CASES = ("albert-tiny:800ktok", "albert-mini:120ktok")
BARS = {"albert-tiny": 1.5, "albert-mini": 1.2}
# In so short a run ten evaluations would be a third of the time; they are forward passes.
ONE_EVALUATION = ["evaluation.every=1.0"]
HERE = Path(__file__).resolve().parents[1]


@dataclass
class Side:
    """One commit: the folder it is checked out in, and what its runs took."""

    name: str
    tree: Path
    tokens: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    rounds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)

    def run(self, preset: str, budget: str, corpus: Path, overrides: list[str]) -> None:
        """One run in a process of its own."""
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "run"
            command = [sys.executable, __file__, "--run", preset, budget, str(corpus), str(out)]
            sets = [word for change in overrides for word in ("--set", change)]
            environment = {**os.environ, "PYTHONPATH": str(self.tree / "src")}
            done = subprocess.run(
                [*command, *sets], env=environment, check=True, stdout=subprocess.PIPE, text=True
            )
            told = json.loads(done.stdout.splitlines()[-1])
            lines = [json.loads(line) for line in (out / "metrics.jsonl").open(encoding="utf-8")]
        steps = [line for line in lines if line["kind"] == "training"]
        tokens = steps[-1]["tokens"] - steps[0]["tokens"]
        seconds = steps[-1]["time"]["seconds"] - steps[0]["time"]["seconds"]
        self.tokens, self.seconds = self.tokens + tokens, self.seconds + seconds
        self.processor += told["processor"]
        self.peaks.append(told["peak"])
        self.rounds.append(tokens / seconds)
        print(
            f"  {self.name:7} {tokens / seconds:9,.0f} tokens/s, "
            f"{tokens / told['processor']:9,.0f} a processor's second",
            flush=True,
        )
        self.losses.append(lines[-1].get("loss", {}).get("masked_lm", float("nan")))

    def __str__(self) -> str:
        rounds = ", ".join(f"{speed:,.0f}" for speed in self.rounds)
        return (
            f"  {self.name:7} {self.tokens / self.seconds:9,.0f} tokens/s ({rounds})   "
            f"peak {max(self.peaks) / 1e9:.2f} GB   held-out loss {self.losses[-1]:.4f}"
        )


def run(preset: str, budget: str, corpus: str, out: str, overrides: list[str]) -> None:
    """What a user's process does; prints its processor's time and peak memory."""
    import litebert
    from litebert.train.callbacks import Callback

    spent: list[float] = []

    class Stopwatch(Callback):
        def on_training(self, metrics: object) -> None:
            spent.append(time.process_time())

    litebert.pretrain(
        preset, corpus, out, budget=budget, overrides=overrides, callbacks=[Stopwatch()]
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"processor": spent[-1] - spent[0], "peak": peak}))


def compare(case: str, before: Path, corpus: Path, rounds: int, overrides: list[str]) -> None:
    preset, _, budget = case.partition(":")
    sides = [Side("before", before), Side("now", HERE)]
    for _ in range(rounds):
        for side in sides:
            side.run(preset, budget, corpus, overrides)
    old, new = (side.tokens / side.seconds for side in sides)
    before_time, now_time = (side.tokens / side.processor for side in sides)
    bar = f" (bar {BARS[preset]}x)" if preset in BARS else ""
    speed = f"  speed: {new / old:.2f}x{bar}; in processor's time {now_time / before_time:.2f}x"
    print(f"{preset}, {budget} a run:", *sides, speed, sep="\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    texts.add_options(parser)
    parser.add_argument("before", type=Path, nargs="?", help="a checkout of the other commit")
    parser.add_argument("--case", action="append", help=f"PRESET:BUDGET; {', '.join(CASES)}")
    parser.add_argument("--corpus", type=Path, help="a prepared store, instead of preparing one")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side")
    parser.add_argument("--set", action="append", default=[], help="of both sides")
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        preset, budget, store, out = options.run
        run(preset, budget, store, out, options.set)
        return
    if options.before is None:
        parser.error("name the folder of the other commit")
    with tempfile.TemporaryDirectory() as scratch:
        corpus = options.corpus or texts.prepare_corpus(options, Path(scratch))
        for case in options.case or CASES:
            overrides = [*ONE_EVALUATION, *options.set]
            compare(case, options.before.resolve(), corpus, options.rounds, overrides)


if __name__ == "__main__":
    main()
