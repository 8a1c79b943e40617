"""Tiny runs in processes of their own, on one rank or several: started, disturbed, compared.

Processes come from a fork server that has imported torch once, so that a run costs tenths of a
second. Ranks meet in a store that the test itself holds (as under `torchrun`), so no port has to
be guessed. A disturbance strikes at an exact step: the run's own callback sends the signal.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.distributed import TCPStore

from litebert.base.errors import LitebertError
from litebert.base.settings import merge
from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.train.callbacks import Callback, RunStarted
from litebert.train.metrics import EvaluationMetrics, Metrics, TrainingMetrics, read_metrics
from litebert.train.pretrain import PretrainingResult, pretrain
from tests.corpus.stores import make_store

PATIENCE = 120.0  # seconds for one run of a second or so: only a run that hangs takes as long
ATTEMPTS = count()
WORDS = 150
PRELOADED = ["litebert.train.pretrain", "torch._dynamo", "sentencepiece", "tokenizers"]
TIMED = ("seconds", "metrics")  # of a checkpoint's state: time spent, bytes of the timed lines

SMALL = {
    "initialization": "truncated_normal",
    "precision": "fp32",
    "model": {
        "embedding_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 64, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    },
    "data": {"max_length": 32, "batch_size": 8},
    "checkpoint": {"every": 3},
    "log": {"every": 2},
    "evaluation": {"every": 0.25, "sequences": 8},
}  # fmt: skip
GENERATOR = {"hidden_size": 16, "num_attention_heads": 1, "intermediate_size": 32}


def small(name: str, **changes: Any) -> Preset:
    """A shipped preset at a size that trains in an instant; dropout stays on."""
    tree = merge(load_preset(name).model_dump(), {"budget": "14steps", "stages": (), **SMALL})
    tree["model"]["embedding_size"] = 16 if name.startswith(("albert", "electra")) else 32
    if tree["generator"] is not None:
        tree["generator"] = merge(tree["model"], GENERATOR)
    return Preset.build(merge(tree, changes), name)


def write_store(folder: Path, seed: int = 5) -> Path:
    """A prepared corpus of 120 documents over a vocabulary of 155 words."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [f"w{number}q" for number in range(WORDS)]
    (folder / "pieces").mkdir(parents=True)
    (folder / "pieces" / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces))
    chance = np.random.default_rng(seed)
    documents = [
        [" ".join(_words(chance)) for _ in range(chance.integers(1, 10))] for _ in range(120)
    ]
    make_store(folder / "store", documents, folder / "pieces", held_out=0.05)
    return folder / "store"


def _words(chance: np.random.Generator) -> list[str]:
    """A sentence in which a word tells something of the next."""
    first = chance.integers(WORDS)
    steps = np.cumsum(chance.integers(0, 4, chance.integers(3, 14)))
    return [f"w{number}q" for number in (first + steps) % WORDS]


@dataclass(frozen=True)
class Blow:
    """A signal after a step, to one rank or (None) to all of them."""

    step: int
    number: signal.Signals
    rank: int | None = None


@dataclass
class Notes(Callback):
    """Remembers what a run said and did; strikes where it is told to."""

    pids: Sequence[int] = ()
    blow: Blow | None = None
    said: list[str] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    metrics: list[Metrics] = field(default_factory=list)

    def on_start(self, run: RunStarted) -> None:
        self.begun.append(run.step)

    def on_message(self, message: str) -> None:
        self.said.append(message)

    def on_training(self, metrics: TrainingMetrics) -> None:
        self.metrics.append(metrics)

    def on_evaluation(self, metrics: EvaluationMetrics) -> None:
        self.metrics.append(metrics)

    def on_step(self, step: int, progress: float) -> None:
        if self.blow is None or self.blow.step != step:
            return
        wanted = self.pids if self.blow.rank is None else [self.pids[self.blow.rank]]
        for pid in sorted(wanted, key=lambda pid: pid == os.getpid()):  # oneself last
            os.kill(pid, self.blow.number)


@dataclass(frozen=True)
class Told:
    """What a rank's process told before it ended; nothing of it if it was killed."""

    result: PretrainingResult | None = None
    error: str | None = None  # "FileError: …"
    said: tuple[str, ...] = ()
    begun: tuple[int, ...] = ()


def train(
    preset: Preset, corpus: Path, out: Path, *, ranks: int = 1, blow: Blow | None = None
) -> list[Told]:
    """Pretrain in processes of their own, until all have ended; what each rank told."""
    return in_ranks(_train, ranks, preset, corpus, out, blow)


def _train(pids: list[int], preset: Preset, corpus: Path, out: Path, blow: Blow | None) -> Told:
    notes = Notes(pids=pids, blow=blow)
    result = error = None
    try:
        result = pretrain(preset, corpus, out, callbacks=[notes])
    except LitebertError as problem:
        error = f"{type(problem).__name__}: {problem}"
    except RuntimeError as problem:  # the other rank is gone
        error = f"{type(problem).__name__}: {problem}"
    return Told(result, error, tuple(notes.said), tuple(notes.begun))


@cache
def meeting_place() -> TCPStore:
    """One store for all attempts, as torchrun's agent has: it remembers those before."""
    patience = timedelta(seconds=PATIENCE)
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=patience)


def in_ranks(work: Callable[..., Told], ranks: int, *arguments: Any) -> list[Told]:
    """Call a function in as many processes as there are ranks, and wait for all of them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    attempt, port = next(ATTEMPTS), meeting_place().port
    pipes = [context.Pipe() for _ in range(ranks)]
    processes = [
        context.Process(target=_live, args=(rank, ranks, port, attempt, end, work, arguments))
        for rank, (_, end) in enumerate(pipes)
    ]
    try:
        for process, (_, end) in zip(processes, pipes, strict=True):
            process.start()
            end.close()
        for ours, _ in pipes:
            ours.send([process.pid for process in processes])
        _see_off(processes)
        return [_hear(ours) for ours, _ in pipes]
    finally:
        for process in processes:
            process.kill()
            process.join()
        for ours, _ in pipes:
            ours.close()


def _see_off(processes: list[Any]) -> None:
    """Wait for the end of all processes; like `torchrun`, end the others when one was killed."""
    left = {process.sentinel: process for process in processes}
    while left:
        ended = wait(list(left), timeout=PATIENCE)
        assert ended, "a rank hangs"
        for sentinel in ended:
            process = left.pop(sentinel)
            process.join()
            if process.exitcode == -signal.SIGKILL:
                for other in left.values():
                    other.kill()


def _hear(end: Connection) -> Told:
    try:
        return end.recv() if end.poll() else Told()
    except (EOFError, ConnectionResetError):
        return Told()


def _live(
    rank: int, ranks: int, port: int, attempt: int, end: Connection, work: Callable[..., Told],
    arguments: Any,
) -> None:  # fmt: skip
    """A rank's process."""
    torch.set_num_threads(1)
    torch.manual_seed(rank + 17)  # a run must not depend on what was drawn before it
    if ranks > 1:
        os.environ |= {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo",
            "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": str(attempt),
        }  # fmt: skip
    end.send(work(end.recv(), *arguments))


def last_checkpoint(run: Path) -> Path:
    """The newest one."""
    return max(path for path in (run / "checkpoints").iterdir() if path.name.isdigit())


def ending(run: Path) -> dict[str, Any]:
    """Everything that two equal runs have in common, times aside."""
    last = last_checkpoint(run)
    state = json.loads((last / "state.json").read_text())
    files = [*last.glob("*.safetensors"), *run.glob("*/*.safetensors")]
    return {
        "files": {str(path.relative_to(run)): path.read_bytes() for path in sorted(files)},
        "state": {key: value for key, value in state.items() if key not in TIMED},
        "metrics": [line.model_dump(exclude={"time"}) for line in read_metrics(run)],
    }


def assert_equal_endings(run: Path, other: Path) -> None:
    """Two runs ended alike, bit for bit."""
    ours, theirs = ending(run), ending(other)
    assert ours["state"] == theirs["state"]
    assert ours["metrics"] == theirs["metrics"]
    assert ours["files"].keys() == theirs["files"].keys()
    assert [n for n, content in ours["files"].items() if content != theirs["files"][n]] == []
