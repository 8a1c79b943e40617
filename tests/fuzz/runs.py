"""Runs as doors: checkpoints, descriptions, results and metrics."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch

import litebert
from litebert.base.errors import LitebertError
from litebert.base.files import write_json, write_manifest
from litebert.finetuning.runs import read_result
from litebert.train.checkpoint import Checkpoints, restore
from litebert.train.metrics import read_metrics
from litebert.train.optimizer import build_optimizer
from litebert.train.run_folder import describe, is_finished, open_run, save_run

STATE = {
    "step": 2, "tokens": 5, "skipped": 0, "seconds": 1.5, "metrics": 10, "batches": {"stage": 0},
    "sums": {"counts": [1.0], "values": [2.0, 3.0]}, "world_size": 1, "threads": 1,
    "device": "cpu", "torch": "2",
}  # fmt: skip


def _module() -> tuple[Any, Any]:
    module = torch.nn.Linear(3, 2)
    return module, build_optimizer(module, litebert.load_preset("albert-tiny").optimizer)


def build_checkpoints(folder: Path) -> None:
    module, optimizer = _module()
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    for step in (1, 2):
        Checkpoints(folder, 2).save(step, module, optimizer, {**STATE, "step": step})


def seal(folder: Path, chance: random.Random) -> None:
    """Now and then a forger who makes the manifest fit."""
    if chance.random() < 0.5:
        write_manifest(folder / "00000002")


def use_checkpoints(folder: Path, out: Path) -> None:
    said: list[str] = []
    found = Checkpoints(folder, 2).last_good(said.append)
    assert found is not None, "the sound checkpoint was not found"
    module, optimizer = _module()
    state = restore(found, module, optimizer)
    assert state["step"] == int(found.name)
    assert all(parameter.isfinite().all() for parameter in module.parameters())


def build_run(folder: Path) -> None:
    preset = litebert.load_preset("albert-tiny")
    run = {**open_run(folder / "run", describe(preset, "x", None)), "unigram_loss": 5.0}
    took = {"finished": True, "step": 2, "tokens": 5, "seconds": 1.0}
    (folder / "run").mkdir()
    save_run(folder / "run", run | took)
    scores = {"dev": {"accuracy": 0.5, "f1": 0.25}}
    result = {
        "seed": 1, "learning_rate": 1e-4, "scores": scores, "step": 1, "steps": 2, "tokens": 3,
        "loss": 0.5, "collapsed": None, "seconds": 1.0, "doubt": None,
        "intervals": {"accuracy": [0.4, 0.6]},
    }  # fmt: skip
    report = {
        "task": "sst-2", "metric": "accuracy", "seeds": [result, result], "mean": 0.5,
        "median": 0.5, "deviation": 0.0, "best": 0.5, "collapses": 0, "train": 5, "dev": {"dev": 5},
        "truncated": 0, "windowed": 0,
    }  # fmt: skip
    write_json(folder / "run" / "result.json", result)
    write_json(folder / "run" / "report.json", report)


def use_run(folder: Path, out: Path) -> None:
    preset = litebert.load_preset("albert-tiny")
    problems = []
    for use in (
        lambda: is_finished(folder / "run"),
        lambda: open_run(folder / "run", describe(preset, "x", None)),
        lambda: read_result(folder / "run", "accuracy"),
        lambda: litebert.scores([folder / "run"]),
    ):
        try:
            use()
        except LitebertError as error:
            problems.append(error)
    if problems:
        raise problems[0]


def build_metrics(folder: Path) -> None:
    line = (
        '{"kind": "training", "step": %d, "tokens": 100, "loss": {"masked_lm": 5.0}, "accuracy": '
        '{"masked_lm": 0.5}, "learning_rate": 0.001, "gradient_norm": 1.0, "time": {"seconds": 2.0,'
        ' "progress": 0.5, "tokens_per_second": 8.0, "data_fraction": 0.0}}\n'
    )
    evaluation = (
        '{"kind": "evaluation", "step": 3, "tokens": 100, "loss": {"masked_lm": 5.0}, '
        '"scores": {"dev": {"f1": 0.5}}, "sample": "a b", "time": {"seconds": 2.0}}\n'
    )
    (folder / "run").mkdir()
    text = "".join(line % step for step in range(1, 4)) + evaluation
    (folder / "run" / "metrics.jsonl").write_text(text)


def use_metrics(folder: Path, out: Path) -> None:
    lines = read_metrics(folder / "run")
    if sum((folder / "run" / "metrics.jsonl").read_bytes()) % 40 == 0 and lines:
        litebert.plot([folder / "run"], out=out.with_suffix(".png"))


def plot_command(folder: Path, out: Path) -> list[str]:
    return ["plot", str(folder / "run"), "--out", str(out.with_suffix(".png"))]
