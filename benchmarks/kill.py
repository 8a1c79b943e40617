"""Kill pretraining at random moments, start it again: is the result the same, bit for bit?

    python benchmarks/kill.py [--each 6] [--kills 200] [--damages 1000] [--steps 400] [--seed 0]

One undisturbed run of every objective against one that is struck `--each` times, SIGKILL or
SIGTERM, after random times. Then a long run on two ranks, struck `--kills` times: both ranks or one
of them, in training or while they start; a run that finishes is compared and another begun. Then
`--damages` random bit flips and truncations of a checkpoint's files: every one must be noticed and
the checkpoint before used; each hundredth is followed by the rest of the run. Equal means: weights,
moments, loader position, sums, budget spent and metrics, times aside. The text is film reviews.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
from torch.distributed import TCPStore

from litebert.base.settings import merge
from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.corpus.preparing.prepare import prepare
from litebert.demos.reviews import reviews_file
from litebert.text.training import train_from_sentences
from litebert.train.callbacks import Callback, RunStarted
from litebert.train.checkpoint import Checkpoints
from litebert.train.metrics import read_metrics
from litebert.train.pretrain import pretrain

PATIENCE = 300.0  # seconds: a run that takes as long hangs
REVIEWS = 400
PRELOADED = ["litebert.train.pretrain", "torch._dynamo", "sentencepiece", "tokenizers"]
TIMED = ("seconds", "metrics")  # of a checkpoint's state: time spent, bytes of the timed lines
OBJECTIVES = {
    "sentence order": "albert-tiny",
    "next sentence, two stages": "bert-base",
    "masked LM alone": "roberta-base",
    "replaced tokens": "electra-small",
    "span boundaries": "spanbert-base",
}
SMALL = {
    "initialization": "truncated_normal",
    "model": {
        "embedding_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 64, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    },
    "data": {"max_length": 64, "batch_size": 8},
    "checkpoint": {"every": 2},
    "log": {"every": 3},
    "evaluation": {"every": 0.1, "sequences": 8},
}  # fmt: skip
GENERATOR = {"hidden_size": 16, "num_attention_heads": 1, "intermediate_size": 32}
STAGES = (
    {"fraction": 0.7, "max_length": 32},
    {"fraction": 0.3, "max_length": 64, "batch_size": 4},
)


def small(name: str, steps: int) -> Preset:
    """A shipped preset at a size that trains in an instant; dropout stays on."""
    tree = load_preset(name).model_dump()
    staged = bool(tree["stages"])
    tree = merge(tree, {**SMALL, "budget": f"{steps}steps", "stages": STAGES if staged else ()})
    if tree["generator"] is not None:
        tree["generator"] = merge(tree["model"], GENERATOR)
    return Preset.build(tree, name)


def make_store(scratch: Path) -> Path:
    """A few hundred film reviews, prepared with a small vocabulary of their own."""
    text = scratch / "reviews.jsonl"
    with reviews_file().open(encoding="utf-8", newline="") as stream:
        rows = [row["text"] for row, _ in zip(csv.DictReader(stream), range(REVIEWS), strict=False)]
    text.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    train_from_sentences(rows, "wordpiece", 1000).save(scratch / "tokenizer")
    tokenizer, store = scratch / "tokenizer", scratch / "store"
    prepare([str(text)], tokenizer, store, held_out=0.05, num_workers=1)
    return scratch / "store"


# Ranks in processes of their own, from a fork server that has imported torch once.


class Herald(Callback):
    """Tells whoever started the run that training begins."""

    def __init__(self, end: Connection) -> None:
        self.end = end

    def on_start(self, run: RunStarted) -> None:
        self.end.send("begun")


def live(rank: int, ranks: int, port: int, end: Connection, preset: Preset, *where: Path) -> None:
    """A rank's process."""
    torch.set_num_threads(1)
    if ranks > 1:
        os.environ |= {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo",
            "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0",
        }  # fmt: skip
    try:
        result = pretrain(preset, *where, callbacks=[Herald(end)])
    except RuntimeError:  # the other rank is gone
        sys.exit(1)
    end.send("finished" if result.finished else "stopped")


@dataclass
class Ranks:
    """The processes of a run under way; they meet in a store of ours, as under `torchrun`."""

    preset: Preset
    corpus: Path
    out: Path
    ranks: int = 1

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self.store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        pipes = [context.Pipe(duplex=False) for _ in range(self.ranks)]
        self.ends = [ours for ours, _ in pipes]
        self.processes: list[Any] = []
        for rank, (_, theirs) in enumerate(pipes):
            where = (self.preset, self.corpus, self.out)
            arguments = (rank, self.ranks, self.store.port, theirs, *where)
            self.processes.append(context.Process(target=live, args=arguments))
            self.processes[-1].start()
            theirs.close()

    def begun(self) -> bool:
        """Wait until training begins; False if the run ended before."""
        return self.ends[0].poll(PATIENCE) and self._hear(0) == "begun"

    def strike(self, number: signal.Signals, ranks: Sequence[int]) -> None:
        for rank in ranks:
            if self.processes[rank].is_alive():
                os.kill(self.processes[rank].pid, number)

    def finished(self) -> bool:
        """Wait for the end of all; when one falls, end the others."""
        left = {process.sentinel: process for process in self.processes}
        while left:
            ended = wait(list(left), timeout=PATIENCE)
            assert ended, "a rank hangs"
            for process in [left.pop(sentinel) for sentinel in ended if isinstance(sentinel, int)]:
                process.join()
                if process.exitcode:
                    for other in left.values():
                        other.kill()
        last = ""
        while (told := self._hear(0)) is not None:
            last = told
        for end in self.ends:
            end.close()
        return last == "finished"

    def _hear(self, rank: int) -> str | None:
        try:
            return self.ends[rank].recv()
        except (EOFError, ConnectionResetError):
            return None


# Comparing.


def ending(run: Path) -> dict[str, Any]:
    """Everything that two equal runs have in common."""
    last = Checkpoints(run / "checkpoints", 1).found()[-1]
    state = json.loads((last / "state.json").read_text())
    files = [*last.glob("*.safetensors"), *run.glob("*/*.safetensors")]
    return {
        "files": {str(path.relative_to(run)): path.read_bytes() for path in sorted(files)},
        "state": {key: value for key, value in state.items() if key not in TIMED},
        "metrics": [line.model_dump(exclude={"time"}) for line in read_metrics(run)],
    }


def check_equal(run: Path, expected: dict[str, Any]) -> None:
    found = ending(run)
    different = [key for key in expected if found[key] != expected[key]]
    assert not different, f"{run}: differs from an undisturbed run in {', '.join(different)}"


def undisturbed(preset: Preset, corpus: Path, out: Path, ranks: int = 1) -> tuple[float, Any]:
    """Seconds of training and the end of a run that nothing happens to."""
    run = Ranks(preset, corpus, out, ranks)
    assert run.begun()
    began = time.perf_counter()
    assert run.finished()
    return time.perf_counter() - began, ending(out)


# Killing.


@dataclass
class Tally:
    """What was done to a run."""

    kills: int = 0
    terms: int = 0
    starting: int = 0  # of both, before training began

    @property
    def all(self) -> int:
        return self.kills + self.terms


def life(run: Ranks, chance: random.Random, span: float, tally: Tally) -> bool:
    """A run struck after a random time; says whether it was faster and finished."""
    early = chance.random() < 0.1
    if not early and not run.begun():
        return run.finished()
    if wait([process.sentinel for process in run.processes], chance.uniform(0, span)):
        return run.finished()
    number = chance.choice((signal.SIGKILL, signal.SIGTERM))
    everyone = list(range(run.ranks))
    run.strike(number, chance.choice((everyone, [chance.choice(everyone)])))
    finished = run.finished()
    if not finished:
        tally.kills += number == signal.SIGKILL
        tally.terms += number == signal.SIGTERM
        tally.starting += early
    return finished


def kill_objectives(corpus: Path, scratch: Path, each: int, seed: int) -> None:
    """Every objective, struck a few times."""
    for title, name in OBJECTIVES.items():
        chance, preset, tally = random.Random(f"{seed} {name}"), small(name, 60), Tally()
        whole, out = scratch / f"{name}-whole", scratch / f"{name}-killed"
        seconds, expected = undisturbed(preset, corpus, whole)
        while tally.all < each:
            if life(Ranks(preset, corpus, out), chance, seconds / 2, tally):
                check_equal(out, expected)
                shutil.rmtree(out)
        assert Ranks(preset, corpus, out).finished()
        check_equal(out, expected)
        print(f"{title} ({name}): {_said(tally)}: bit-equal", flush=True)


def kill_ranks(corpus: Path, scratch: Path, kills: int, steps: int, seed: int) -> None:
    """A long run on two ranks, struck many times."""
    chance, preset, tally = random.Random(seed), small("electra-small", steps), Tally()
    whole, out = scratch / "ranks-whole", scratch / "ranks-killed"
    seconds, expected = undisturbed(preset, corpus, whole, 2)
    span = 10 * seconds / steps  # some ten steps
    runs, began = 1, time.perf_counter()
    while tally.all < kills:
        if life(Ranks(preset, corpus, out, 2), chance, span, tally):
            check_equal(out, expected)
            shutil.rmtree(out)
            runs += 1
    assert Ranks(preset, corpus, out, 2).finished()
    check_equal(out, expected)
    minutes = (time.perf_counter() - began) / 60
    print(f"two ranks, {steps} steps: {_said(tally)} over {runs} runs in {minutes:.1f} minutes: "
          "bit-equal", flush=True)  # fmt: skip


def _said(tally: Tally) -> str:
    starting = f" ({tally.starting} while starting)" if tally.starting else ""
    return f"{tally.kills} SIGKILL and {tally.terms} SIGTERM{starting}"


# Damaging.


def damage(path: Path, chance: random.Random) -> str:
    """Flip a bit of a file, or cut it short."""
    if chance.random() < 0.5:
        os.truncate(path, chance.randrange(path.stat().st_size))
        return "truncation"
    with path.open("r+b") as stream:
        stream.seek(chance.randrange(path.stat().st_size))
        byte = stream.read(1)[0]
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte ^ 1 << chance.randrange(8)]))
    return "bit flip"


def damage_checkpoints(corpus: Path, scratch: Path, damages: int, seed: int) -> None:
    """Damage the newest of two checkpoints, again and again."""
    chance, preset = random.Random(seed), small("albert-tiny", 12)
    whole, out = scratch / "damage-whole", scratch / "damaged"
    _, expected = undisturbed(preset, corpus, whole)
    kept = Checkpoints(whole / "checkpoints", 2)
    before, newest = kept.found()
    counts, resumed = {"truncation": 0, "bit flip": 0}, 0
    for number in range(damages):
        name = chance.choice(sorted(path.name for path in newest.iterdir()))
        content = (newest / name).read_bytes()
        kind = damage(newest / name, chance)
        said: list[str] = []
        assert kept.last_good(said.append) == before, f"{kind} of {name} went unnoticed"
        assert len(said) == 1, f"{kind} of {name} was not said"
        counts[kind] += 1
        if number % 100 == 0:
            resume_damaged(preset, corpus, whole, out, expected)
            resumed += 1
        (newest / name).write_bytes(content)
    done = " and ".join(f"{count} {kind}s" for kind, count in counts.items())
    print(f"{done}: all noticed, the one before used; {resumed} runs went on: bit-equal")


def resume_damaged(preset: Preset, corpus: Path, whole: Path, out: Path, expected: Any) -> None:
    """Finish a copy of a run whose newest checkpoint is damaged."""
    shutil.copytree(whole, out)
    described = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**described, "finished": False}))
    for folder in ("model", "generator"):
        shutil.rmtree(out / folder, ignore_errors=True)
    assert Ranks(preset, corpus, out).finished()
    check_equal(out, expected)
    shutil.rmtree(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--each", type=int, default=6, help="kills of every objective's run")
    parser.add_argument("--kills", type=int, default=200, help="kills of the run on two ranks")
    parser.add_argument("--steps", type=int, default=400, help="steps of the run on two ranks")
    parser.add_argument("--damages", type=int, default=1000, help="damaged checkpoints")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        corpus = make_store(scratch)
        kill_objectives(corpus, scratch, options.each, options.seed)
        kill_ranks(corpus, scratch, options.kills, options.steps, options.seed)
        damage_checkpoints(corpus, scratch, options.damages, options.seed)
    print("killed, stopped, damaged: every run ended like an undisturbed one, bit for bit")


if __name__ == "__main__":
    main()
