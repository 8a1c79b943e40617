"""Mutants of everything that is read, through everything that reads it: are all refused well?

    python -m tests.fuzz [--tries 100000] [--surface NAME] [--seed 0]

A row a surface: mutants tried, refused in one sentence, and findings, each with its number; the
same seed makes the same mutants. Exit code 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch

from tests.fuzz.campaign import campaign
from tests.fuzz.surfaces import SURFACES


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tries", type=int, default=100_000, help="mutants, over all surfaces")
    parser.add_argument("--surface", choices=SURFACES, action="append", help="by default all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    tried = found = 0
    with tempfile.TemporaryDirectory() as scratch:
        names = options.surface or list(SURFACES)
        began = time.perf_counter()
        for name, tally in campaign(names, options.tries, options.seed, Path(scratch)):
            seconds, began = time.perf_counter() - began, time.perf_counter()
            print(
                f"{name:16} {tally.tries:7,} tries, {tally.refused:7,} refused, "
                f"{len(tally.findings)} findings, {seconds:.0f} s",
                flush=True,
            )
            tried, found = tried + tally.tries, found + len(tally.findings)
            for number, finding in list(tally.findings.items())[:10]:
                print(f"  mutant {number}: {finding}", flush=True)
    print(f"{tried:,} mutants over {len(names)} surfaces: {found} findings")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
