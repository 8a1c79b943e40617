"""Lives of a run and of a preparation, each struck at a file operation and begun again.

Power loss is imitated only where one process writes: what another one flushed is not known here.
"""

from __future__ import annotations

import filecmp
import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.base.errors import LitebertError
from litebert.configs.schema import Preset
from litebert.corpus.preparing.prepare import prepare
from tests.corpus.stores import make_documents, write_wordpiece
from tests.faults.strike import VARIABLE, Strike, environment, install
from tests.train.runs import Told, _train, assert_equal_endings, in_ranks, small, write_store

OPERATIONS = 90  # of a life, about: where the next strike may fall
CHUNK_BYTES = 4096


@dataclass
class Tally:
    """What was done, and how often everything came to its end."""

    strikes: int = 0
    power_losses: int = 0
    finished: int = 0


def _pretrain(pids: list[int], preset: Preset, corpus: Path, out: Path, strike: Any) -> Told:
    """A rank; the main one, which writes, is struck."""
    if strike is not None and os.environ.get("RANK", "0") == "0":
        os.environ[f"{VARIABLE}_BEGAN"] = str(time.time())
        install(strike)
    return _train(pids, preset, corpus, out, None)


def _prepare(
    pids: list[int], text: Path, tokenizer: Path, out: Path, workers: int, strike: Any, whose: str
) -> Told:
    """A preparation; itself or its workers are struck."""
    os.environ[f"{VARIABLE}_BEGAN"] = str(time.time())
    if strike is not None and whose == "workers":
        os.environ.update(environment(strike, out.parent / "site"))
    elif strike is not None:
        install(strike)
    try:
        prepare([str(text)], tokenizer, out, chunk_bytes=CHUNK_BYTES, num_workers=workers)
    except LitebertError as error:
        return Told(error=str(error))
    return Told(result=True)  # type: ignore[arg-type]


def strike_until(
    live: Callable[[Strike | None], bool], out: Path, strikes: int, seed: int, *,
    power_loss: bool, compare: Callable[[], None], operations: int = OPERATIONS,
) -> Tally:  # fmt: skip
    """Live, be struck and live again, so many times; everything that finishes is compared."""
    chance, tally = random.Random(seed), Tally()
    while tally.strikes < strikes:
        lost = power_loss and chance.random() < 0.5
        place, after, cut = (
            chance.randrange(operations),
            chance.random() < 0.5,
            chance.randrange(99),
        )
        if live(Strike(place, after, lost, str(out), cut)):
            compare()
            tally.finished += 1
            shutil.rmtree(out)
        else:
            tally.strikes, tally.power_losses = tally.strikes + 1, tally.power_losses + lost
    assert live(None)
    compare()
    tally.finished += 1
    return tally


def strike_pretraining(scratch: Path, ranks: int, strikes: int, seed: int) -> Tally:
    """A small run on one or two ranks."""
    preset, corpus = small("albert-tiny"), write_store(scratch)
    whole, out = scratch / "whole", scratch / "struck" / "run"
    out.parent.mkdir()

    def live(strike: Strike | None, folder: Path = out) -> bool:
        told = in_ranks(_pretrain, ranks, preset, corpus, folder, strike)[0]
        assert told.error is None, told.error  # a rank that was struck tells nothing
        return told.result is not None and told.result.finished

    assert live(None, whole)
    return strike_until(
        live, out, strikes, seed, power_loss=True,
        compare=lambda: assert_equal_endings(out, whole),
    )  # fmt: skip


def strike_preparing(scratch: Path, workers: int, whose: str, strikes: int, seed: int) -> Tally:
    """A small corpus by one or several workers."""
    tokenizer, text = write_wordpiece(scratch / "tokenizer"), scratch / "text.txt"
    documents = make_documents(0, 150, (1, 6), (1, 10))
    text.write_text("\n\n".join("\n".join(document) for document in documents))
    whole, out = scratch / "whole", scratch / "struck" / "store"
    out.parent.mkdir()

    def live(strike: Strike | None, folder: Path = out) -> bool:
        arguments = (text, tokenizer, folder, workers, strike, whose)
        told = in_ranks(_prepare, 1, *arguments)[0]
        killed = told.error is None or "a worker process was killed" in told.error
        assert killed, told.error
        return told.result is not None

    def compare() -> None:
        names = [
            sorted(p.relative_to(f).as_posix() for p in f.rglob("*") if p.is_file())
            for f in (whole, out)
        ]
        assert names[0] == names[1]
        assert filecmp.cmpfiles(whole, out, names[0], shallow=False)[1:] == ([], [])

    assert live(None, whole)
    return strike_until(
        live, out, strikes, seed, power_loss=workers == 1, compare=compare,
        operations=12 if whose == "workers" else 40,
    )  # fmt: skip
