"""Does `litebert plan` tell the truth? Its estimate against a run, for tiny, mini and base.

    python benchmarks/plan_truth.py [--case albert-mini:32x128] [--set model.sharing=none]

The plan comes from `litebert plan --measure --json`; the run is another process that trains for
twenty seconds and reports its own peak memory and median step. Bar: within 20 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

CASES = (
    "albert-tiny:32x128",
    "albert-mini:32x128",
    "albert-base-v2:32x128",
    "albert-base-v2:8x512",
)
SECONDS = 20.0
BAR = 0.20


def run(preset: str, batch: int, length: int, sets: list[str]) -> None:
    """The run that the plan is held against, in this process."""
    from litebert.base.runtime import keep_freed_memory, memory_peak

    keep_freed_memory()
    from litebert.planning.workload import Workload

    from litebert.configs.load import load_preset

    work = Workload(load_preset(preset, sets), batch, length)
    work.step()
    times: list[float] = []
    while len(times) < 3 or sum(times) < SECONDS:
        begin = time.perf_counter()
        work.step()
        times.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": statistics.median(times), "peak": memory_peak()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--case", action="append", help="PRESET:BxT")
    parser.add_argument("--set", action="append", default=[], dest="sets")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    worst = 0.0
    for case in options.case or CASES:
        preset, _, grid = case.partition(":")
        batch, length = (int(n) for n in grid.split("x"))
        if options.run:
            run(preset, batch, length, options.sets)
            return
        sets = [word for value in options.sets for word in ("--set", value)]
        shape = ["--batch", str(batch), "--length", str(length)]
        command = [sys.executable, "-m", "litebert", "plan", preset, "--measure", "--json"]
        plan = _json([*command, *shape, *sets])
        real = _json([sys.executable, __file__, "--run", "--case", case, *sets])
        memory = plan["memory"]["total"] / real["peak"] - 1
        seconds = plan["measured"]["seconds_per_step"] / real["seconds"] - 1
        worst = max(worst, abs(memory), abs(seconds))
        print(
            f"{case:24} memory: plan {plan['memory']['total'] / 1e9:.2f} GB, run "
            f"{real['peak'] / 1e9:.2f} GB ({memory:+.0%})   step: plan "
            f"{plan['measured']['seconds_per_step']:.3f} s, run {real['seconds']:.3f} s "
            f"({seconds:+.0%})", flush=True,
        )  # fmt: skip
    print(f"largest error {worst:.0%}, bar {BAR:.0%}: {'kept' if worst <= BAR else 'MISSED'}")


def _json(command: list[str]) -> Any:
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


if __name__ == "__main__":
    main()
