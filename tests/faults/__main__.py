"""Strike at the moments of writing, 200 times and more: does everything end as if undisturbed?

    python -m tests.faults [--strikes 200] [--seed 0]

A pretraining on one rank and on two, a preparation by one worker and by two (which are struck
themselves, or their parent). SIGKILL falls before or after a random fsync, rename or removal; where
one process does all the writing, half of the strikes are power losses that also cut what was not
flushed. Every run and store that finishes is compared with an undisturbed one, bit for bit.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.faults.lives import Tally, strike_preparing, strike_pretraining


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--strikes", type=int, default=200, help="over all five cases")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    each, seed = -(-options.strikes // 5), options.seed
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for ranks in (1, 2):
            tally = strike_pretraining(scratch / f"ranks-{ranks}", ranks, each, seed)
            total += _say(f"pretraining on {ranks} rank(s)", tally)
        for workers, whose in ((1, "parent"), (2, "parent"), (2, "workers")):
            place = scratch / f"prepare-{workers}-{whose}"
            place.mkdir()
            tally = strike_preparing(place, workers, whose, each, seed)
            total += _say(f"preparing with {workers} worker(s), {whose} struck", tally)
    print(f"{total} strikes: everything ended like an undisturbed run, bit for bit")


def _say(what: str, tally: Tally) -> int:
    print(
        f"{what}: {tally.strikes} strikes ({tally.power_losses} power losses), "
        f"{tally.finished} finished: all equal",
        flush=True,
    )
    return tally.strikes


if __name__ == "__main__":
    main()
