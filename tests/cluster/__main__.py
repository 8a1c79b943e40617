"""Random faults over a run of torchrun on two hosts: does it end as if nothing had happened?

    python -m tests.cluster [--faults 50] [--steps 3000] [--seed 0] [--minutes 14]

Two network namespaces (root, iproute2). Ranks are killed, the cable is out for less than the
timeout of the process group or for longer, at random moments; torchrun starts the ranks again. A
run that finishes before all faults have struck is compared, and another one begun. Nothing may
hang: a run that makes no step for a while is a failure.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import test_torchrun as runs
from tests.cluster.network import Network, two_hosts, wait_until
from tests.train.runs import assert_equal_endings, write_store

TIMEOUT = 5.0  # seconds, of the process group
PATIENCE = 120.0  # seconds without a step: it hangs
# Steps at the end that are left alone: torchrun starts a rank that is killed as it leaves again,
# and waits ten minutes for the other one, which has left.
LEAVING = 100
KINDS = ("rank 0 killed", "rank 1 killed", "short cut", "long cut")


def strike(network: Network, kind: str, chance: random.Random) -> bool:
    """Do something to a run; whether there was something to do it to."""
    if kind.endswith("killed"):
        pids = network.pids(int(kind[5]), "-u -m litebert")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return bool(pids)
    network.cut()
    time.sleep(chance.uniform(0.2, 3.0) if kind == "short cut" else TIMEOUT + chance.uniform(3, 6))
    network.mend()
    return True


def disturb(folder: Path, corpus: Path, faults: int, until: float, chance: random.Random,
            tally: Counter[str]) -> None:  # fmt: skip
    """One run, struck until it ends or enough was done; it ends by itself in any case."""
    with two_hosts() as network:
        runs.start(network, corpus, folder, restarts=1000)
        while tally.total() < faults and time.monotonic() < until:
            time.sleep(chance.uniform(0.0, 3.0))  # also while ranks are starting
            if any(process.poll() is not None for process in network.processes):
                break
            before, kind = runs.step(folder), chance.choice(KINDS)
            if before > runs.STEPS - LEAVING:
                break
            if strike(network, kind, chance):
                tally[kind] += 1
                print(f"{tally.total()}: {kind} at step {before:,}", flush=True)
            if chance.random() < 0.7:  # else the next one strikes while ranks meet again
                what = f"a step after fault {tally.total()} ({kind})"
                wait_until(has_moved(network, folder), PATIENCE, what)
        runs.finish(network, folder, 400)


def has_moved(network: Network, folder: Path) -> Callable[[], bool]:
    """Whether a run has ended, or gone further than it is now."""
    before = runs.step(folder)

    def moved() -> bool:
        ended = any(process.poll() is not None for process in network.processes)
        return ended or runs.step(folder) > before

    return moved


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--minutes", type=float, default=14.0, help="no fault after these")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance, tally, compared = random.Random(options.seed), Counter[str](), 0
    runs.STEPS = options.steps
    kept = (s for s in runs.SETTINGS if "timeout" not in s and "every" not in s)
    often = ("log.every=5", "checkpoint.every=20")
    runs.SETTINGS = (*kept, *often, f"distributed.timeout={TIMEOUT}")
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        corpus = write_store(place / "corpus")
        with two_hosts() as network:
            began = time.monotonic()
            runs.start(network, corpus, place / "undisturbed")
            runs.finish(network, place / "undisturbed")
            print(f"undisturbed: {time.monotonic() - began:.0f} s", flush=True)
        while tally.total() < options.faults and time.monotonic() < until:
            shutil.rmtree(place / "disturbed", ignore_errors=True)
            disturb(place / "disturbed", corpus, options.faults, until, chance, tally)
            assert_equal_endings(place / "disturbed" / "run", place / "undisturbed" / "run")
            compared += 1
    print(f"{tally.total()} faults ({dict(tally)}) over {compared} run(s): all ended bit-identical")


if __name__ == "__main__":
    try:
        main()
    except pytest.skip.Exception as error:  # there are no namespaces here
        print(error)
