"""Early exit on a pretrained encoder: what it costs in score, what it gives in sentences a second.

    python benchmarks/exits.py run --data glue --out exits            SST-2 and STS-B, three seeds
    python benchmarks/exits.py run --data glue --out exits --tasks mrpc --set epochs=1

For each task: fine-tuned with and without exits from the same seeds (does a head at every depth
cost full depth anything?); then, for each seed with exits, the rules of the ladder on the dev set:
score, mean depth, and speed of static batches whose survivors are regrouped, against the same
batches at full depth, in turns within one process. `chosen` is what `accuracy=-0.5` promises
honestly: the rule is chosen on one half of dev and scored on the other, both ways. Where
`litebert.Engine` is there, its speed stands beside it. Bar: 1.8x at a loss of at most half a point.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import litebert
from litebert.finetuning.finetune import FinetuneReport
from litebert.inference.calibrate import ladder, leave
from litebert.inference.exits import CalibratedRule, Calibration, parse_exit
from litebert.inference.model_folder import open_tokenizer, task_of
from litebert.inference.run import predict_examples, run_depths
from litebert.model.model import Model
from litebert.tasks.data import read_split
from litebert.tasks.features import Features
from litebert.tasks.readers.text_file import quiet
from litebert.tasks.source import DataSource
from litebert.tasks.task import Output, Task

POINTS, SPEED_UP = 0.5, 1.8
ROUNDS = 3
TIMED = ("patience=1", "patience=2", "confidence=0.9", "depth=3")


@dataclass(frozen=True)
class Opened:
    """A fine-tuned model and the dev set."""

    task: Task
    model: Model
    examples: Sequence[Any]
    features: Features


def tune(options: argparse.Namespace, task: str, exits: bool) -> FinetuneReport:
    """All seeds of a task, kept; a finished run is found again."""
    out = options.out / f"{task}-{'exits' if exits else 'plain'}"
    found = litebert.finetune(
        options.encoder, task, out, data=options.data, seeds=options.seeds, keep_all=True,
        overrides=[*options.overrides, f"exits={str(exits).lower()}"],
    )  # fmt: skip
    assert found.report is not None
    return found.report


def open_seed(options: argparse.Namespace, task: str, seed: int) -> tuple[Opened, Path]:
    """The model of a seed, with exits."""
    folder = options.out / f"{task}-exits" / f"seed-{seed}" / "model"
    model = Model.load(folder)
    tuned = task_of(model, folder)
    source = DataSource.build(options.data)
    examples = read_split(tuned, source, split="dev", labelled=True, say=quiet)
    return Opened(tuned, model, examples, tuned.features(examples, open_tokenizer(folder))), folder


def table(opened: Opened, said: Sequence[Sequence[Output]], half: Sequence[int]) -> Calibration:
    """The ladder on some of the examples, out of the outputs of all depths."""
    task, metric = opened.task, opened.task.settings.metrics[0]

    def row(text: str) -> CalibratedRule:
        left = [leave(parse_exit(text, task, None), outputs) for outputs in said]
        found = task.decode(opened.examples, opened.features, [one[-1] for one in left])
        score = task.score([opened.examples[i] for i in half], [found[i] for i in half])[metric]
        chosen = np.isin(opened.features.example_of, half)
        depths = np.array([len(one) for one in left])[chosen]
        return CalibratedRule(text, float(score), float(depths.mean()))

    depth = opened.model.config.num_hidden_layers
    return Calibration(metric, tuple(row(text) for text in ladder(task, depth)))


def chosen_on_the_other_half(halves: Sequence[Calibration]) -> dict[str, Any]:
    """What the rule that was chosen on one half gives on the other, the mean of both ways."""
    losses, depths, rules = [], [], []
    for here, there in (halves, halves[::-1]):
        rule = here.cheapest(POINTS)
        row = next(row for row in there.rows if row.rule == rule)
        losses.append(100 * (there.rows[-1].score - row.score))
        depths.append(row.mean_depth)
        rules.append(rule)
    return {"rules": rules, "points_lost": np.mean(losses), "mean_depth": np.mean(depths)}


def seconds(runs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The fastest of a few rounds of each, in turns."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            found[name].append(time.perf_counter() - start)
    return {name: min(times) for name, times in found.items()}


def static_speeds(opened: Opened, rules: Sequence[str]) -> dict[str, float]:
    """How much faster regrouped static batches are than the same batches at full depth."""

    def full() -> Any:
        return predict_examples(opened.task, opened.model, opened.examples, opened.features)

    def exiting(text: str) -> Callable[[], Any]:
        rule = parse_exit(text, opened.task, None)
        return lambda: run_depths(opened.task, opened.model, opened.features.batch, rule)

    found = seconds({"full": full, **{text: exiting(text) for text in rules}})
    return {text: found["full"] / found[text] for text in rules}


def engine_speeds(opened: Opened, folder: Path, rules: Sequence[str]) -> dict[str, float]:
    """The same of the whole engine in int8, from texts to predictions; nothing where it is not."""
    if not hasattr(litebert, "Engine"):
        return {}
    engine = litebert.Engine(folder, precision="int8")  # type: ignore[attr-defined]
    texts = [_asked(example) for example in opened.examples]
    runs = {text: lambda text=text: engine.predict(texts, exit=text) for text in rules}
    found = seconds({"full": lambda: engine.predict(texts), **runs})
    return {text: found["full"] / found[text] for text in rules}


def _asked(example: Any) -> Any:
    if hasattr(example, "words"):
        return list(example.words)
    return example.first if example.second is None else (example.first, example.second)


def measure(options: argparse.Namespace, task: str, seed: int) -> dict[str, Any]:
    """All that is said of one seed's model."""
    opened, folder = open_seed(options, task, seed)
    said = run_depths(opened.task, opened.model, opened.features.batch)
    everyone = range(len(opened.examples))
    whole = table(opened, said, everyone)
    rules = dict.fromkeys([whole.cheapest(POINTS), *TIMED])
    known = [text for text in rules if text.partition("=")[0] in opened.task.exit_rules]
    chosen = chosen_on_the_other_half([table(opened, said, everyone[k::2]) for k in (0, 1)])
    print(f"{task}, seed {seed}\n{whole}")
    print("chosen on one half, scored on the other:", json.dumps(chosen, default=float))
    static = static_speeds(opened, known)
    engine = engine_speeds(opened, folder, known)
    for text in known:
        row = next(row for row in whole.rows if row.rule == text)
        print(
            f"{text:16} {100 * (whole.rows[-1].score - row.score):+5.2f} points lost, mean depth "
            f"{row.mean_depth:.2f}, static {static[text]:.2f}x"
            + (f", engine {engine[text]:.2f}x" if engine else "")
        )
    rule = whole.cheapest(POINTS)
    return {"rule": rule, "static": static[rule], "engine": engine.get(rule), **chosen}


def summary(task: str, plain: FinetuneReport, exits: FinetuneReport, rows: list[Any]) -> None:
    """Over seeds: full depth with and without exits, and what the chosen rules give."""
    for name, report in (("without exits", plain), ("with exits", exits)):
        values = [f"{100 * seed.value(report.metric):.1f}" for seed in report.seeds]
        print(f"{task}, {name:13}: {report.metric} {100 * report.mean:.2f} ({', '.join(values)})")
    for name in ("points_lost", "mean_depth", "static", "engine"):
        values = [row[name] for row in rows if row[name] is not None]
        if values:
            print(f"{task}, chosen rule, {name}: median {statistics.median(values):.2f}")
    print(f"bar: {SPEED_UP}x at a loss of at most {POINTS} points")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("encoder", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the folder of GLUE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=["sst-2", "sts-b"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for task in options.tasks:
        exits, plain = tune(options, task, True), tune(options, task, False)
        rows = [measure(options, task, seed) for seed in range(1, options.seeds + 1)]
        summary(task, plain, exits, rows)


if __name__ == "__main__":
    main()
