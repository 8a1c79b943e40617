"""Does `litebert plan` tell the truth? Its speed and memory against a real run of `pretrain`.

    python benchmarks/plan_truth.py [--case albert-mini] [--set data.batch_size=8] [--seconds 60]

The plan comes from `litebert plan PRESET --measure --corpus CORPUS --json`. The run is another
process that pretrains on film reviews, with a small vocabulary, at the preset's own batch shape:
its speed is that of all lines of metrics.jsonl but the first few together, its memory the process's
peak. Plans and runs take turns, three of each, and their medians are compared, as a machine's own
speed changes by a quarter from minute to minute. The paper's base has batches of 4,096 sequences;
here both sides have two, so that a step takes seconds. Bar: within 15 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

CASES = {
    "albert-tiny": [],
    "albert-mini": ["log.every=3"],
    "albert-base": ["data.batch_size=2", "log.every=1"],
}
VOCAB_SIZE = 8000
SETTLING = 3  # lines of metrics that are not counted
FEWEST_LINES = 3
BAR = 0.15
# One small evaluation, at the end: it is no part of the speed, but takes its time.
QUIET = ["evaluation.every=1.0", "evaluation.sequences=8"]


def prepare_corpus(scratch: Path) -> Path:
    import litebert
    from litebert.demos.reviews import write_texts

    text = scratch / "reviews.jsonl"
    write_texts(text)
    litebert.train_tokenizer(
        [str(text)], scratch / "tokenizer", vocab_size=VOCAB_SIZE, sample=100_000
    )
    litebert.prepare([str(text)], scratch / "tokenizer", scratch / "corpus")
    return scratch / "corpus"


def run(preset: str, corpus: Path, seconds: float, overrides: list[str]) -> None:
    """The run that the plan is held against, in this process; prints what it took."""
    import litebert
    from litebert.base.runtime import memory_peak
    from litebert.train.metrics import TrainingMetrics, read_metrics

    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "run"
        litebert.pretrain(preset, corpus, out, budget=f"{seconds:g}s", overrides=overrides)
        lines = [line for line in read_metrics(out) if isinstance(line, TrainingMetrics)]
    if len(lines) - SETTLING < FEWEST_LINES:
        sys.exit(f"{preset}: only {len(lines)} lines of metrics; give it more --seconds")
    times = [after.time.seconds - before.time.seconds for before, after in pairwise(lines)]
    rates = [line.time.tokens_per_second for line in lines[1:]]
    tokens = sum(time * rate for time, rate in zip(times[SETTLING:], rates[SETTLING:], strict=True))
    print(json.dumps({"tokens_per_second": tokens / sum(times[SETTLING:]), "peak": memory_peak()}))


def compare(preset: str, corpus: Path, seconds: float, overrides: list[str], rounds: int) -> float:
    """The larger of the two errors."""
    sets = [word for value in overrides for word in ("--set", value)]
    command = [sys.executable, "-m", "litebert", "plan", preset, "--measure", "--json"]
    worker = [sys.executable, __file__, "--run", str(corpus), "--seconds", str(seconds)]
    plans, runs = [], []
    for _ in range(rounds):
        plans += _json([*command, "--corpus", str(corpus), *sets])
        runs.append(_json([*worker, "--case", preset, *sets]))
    planned = [plan["speed"]["tokens_per_second"] for plan in plans]
    found = [run["tokens_per_second"] for run in runs]
    speed = statistics.median(planned) / statistics.median(found) - 1
    needed, taken = plans[0]["memory"]["total"], statistics.median(run["peak"] for run in runs)
    memory = needed / taken - 1
    print(
        f"{preset:12} {plans[0]['batch_size']} x {plans[0]['max_length']}   speed: plan "
        f"{_told(planned)} tokens/s, run {_told(found)} ({speed:+.0%})   memory: plan "
        f"{needed / 1e9:.2f} GB, run {taken / 1e9:.2f} GB ({memory:+.0%})",
        flush=True,
    )
    return max(abs(memory), abs(speed))


def _told(speeds: list[float]) -> str:
    return f"{statistics.median(speeds):,.0f} ({min(speeds):,.0f} to {max(speeds):,.0f})"


def _json(command: list[str]) -> Any:
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(result.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--case", action="append", help="a preset; repeatable")
    parser.add_argument("--set", action="append", default=[], help="of both sides, in every case")
    parser.add_argument("--seconds", type=float, default=45.0, help="of each run")
    parser.add_argument("--rounds", type=int, default=3, help="of plan and run, in turns")
    parser.add_argument("--corpus", type=Path, help=f"a store of {VOCAB_SIZE} tokens, if made")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(options.case[0], options.run, options.seconds, [*QUIET, *options.set])
        return
    worst = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        corpus = options.corpus or prepare_corpus(Path(scratch))
        for preset in options.case or CASES:
            overrides = [*CASES.get(preset, []), *options.set]
            worst = max(worst, compare(preset, corpus, options.seconds, overrides, options.rounds))
    print(f"largest error {worst:.0%}, bar {BAR:.0%}: {'kept' if worst <= BAR else 'MISSED'}")


if __name__ == "__main__":
    main()
