"""Early exit on a pretrained encoder: what it costs in score, what it gives in sentences a second.

    python benchmarks/exits.py run --data glue --out exits            SST-2 and STS-B, three seeds
    python benchmarks/exits.py run --data glue --out exits --tasks mrpc --seeds 1 --no-plain \
        --set steps=100 --timed 200 --rounds 2                        a few minutes
    python benchmarks/exits.py run --data glue --out exits --part tune     now, and
    python benchmarks/exits.py run --data glue --out exits --part measure  when the machine is quiet

`run` is a pretraining run, or a model folder. For each task: fine-tuned with and without exits from
the same seeds (does a head at every depth cost full depth anything?); then, for each seed with
exits, the rules of the ladder on the dev set: score, mean depth, and speed. `chosen` is what
`accuracy=-0.5` promises honestly: the rule is chosen on one half of dev and scored on the other,
both ways. Speed is that of int8, from texts to predictions, in turns within one process, against
the faster of two sides that run at full depth:

all at once   `predict` of a list, at full depth
full, loaded  one request a text through `submit`, many at a time, at full depth
static        batches whose survivors are regrouped after each layer, with the same packed weights
engine        `submit` with the rule: those that are done leave, new ones join

Bar: the engine is 1.8x as fast as int8 at full depth at a loss of at most half a point.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import litebert
from litebert.finetuning.finetune import FinetuneReport
from litebert.inference.calibrate import ladder, leave
from litebert.inference.exits import CalibratedRule, Calibration, parse_exit
from litebert.inference.model_folder import open_tokenizer, task_of
from litebert.inference.run import run_depths
from litebert.model.model import Model
from litebert.tasks.data import read_split
from litebert.tasks.features import Features
from litebert.tasks.readers.text_file import quiet
from litebert.tasks.source import DataSource
from litebert.tasks.task import Output, Task

POINTS, SPEED_UP = 0.5, 1.8
IN_FLIGHT = 256
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


def seconds(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The fastest of a few rounds of each, in turns."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            found[name].append(time.perf_counter() - start)
    return {name: min(times) for name, times in found.items()}


def speeds(
    options: argparse.Namespace, opened: Opened, folder: Path, rules: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Static batches and the engine, by rule, as multiples of the faster side at full depth."""
    engine = litebert.Engine(folder, precision="int8")
    task, timed = opened.task, opened.examples[: options.timed]
    texts = [_asked(example) for example in timed]

    def static(text: str) -> None:
        examples = task.examples_of(texts)
        features = task.features(examples, engine.tokenizer)
        rule = parse_exit(text, task, None)
        said = run_depths(
            task, engine.model, features.batch, rule, precision="fp32"
        )  # it is packed
        task.decode(examples, features, [outputs[-1] for outputs in said])

    runs: dict[str, Callable[[], Any]] = {
        "all at once": lambda: engine.predict(texts),
        "full, loaded": lambda: under_load(engine, texts, None),
    }
    for text in rules:
        runs[f"static {text}"] = partial(static, text)
        runs[f"engine {text}"] = partial(under_load, engine, texts, text)
    found = {name: len(texts) / taken for name, taken in seconds(runs, options.rounds).items()}
    engine.close()
    print("int8 at full depth, sentences/s: " + told(found, ("all at once", "full, loaded")))
    full = max(found["all at once"], found["full, loaded"])
    return {text: {s: found[f"{s} {text}"] / full for s in ("static", "engine")} for text in rules}


def told(found: dict[str, float], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {found[name]:.1f}" for name in names)


def under_load(engine: litebert.Engine, texts: Sequence[Any], exit: str | None) -> None:
    """Every text a request of its own; as many are on their way as a busy service would have."""
    open_: deque[Future[Any]] = deque()
    for text in texts:
        open_.append(engine.submit(text, exit=exit))
        if len(open_) > IN_FLIGHT:
            open_.popleft().result()
    for future in open_:
        future.result()


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
    speed = speeds(options, opened, folder, known)
    for text in known:
        row = next(row for row in whole.rows if row.rule == text)
        print(
            f"{text:16} {100 * (whole.rows[-1].score - row.score):+5.2f} points lost, mean depth "
            f"{row.mean_depth:.2f}, static {speed[text]['static']:.2f}x, "
            f"engine {speed[text]['engine']:.2f}x"
        )
    rule = whole.cheapest(POINTS)
    return {"rule": rule, **speed[rule], **chosen}


def summary(
    task: str, plain: FinetuneReport | None, exits: FinetuneReport, rows: list[Any]
) -> None:
    """Over seeds: full depth with and without exits, and what the chosen rules give."""
    for name, report in (("without exits", plain), ("with exits", exits)):
        if report is None:
            continue
        values = [f"{100 * seed.value(report.metric):.1f}" for seed in report.seeds]
        print(f"{task}, {name:13}: {report.metric} {100 * report.mean:.2f} ({', '.join(values)})")
    for name in ("points_lost", "mean_depth", "static", "engine"):
        values = [row[name] for row in rows]
        print(f"{task}, chosen rule, {name}: median {statistics.median(values):.2f}")
    print(f"bar: {SPEED_UP}x at a loss of at most {POINTS} points")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("encoder", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the folder of GLUE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=["sst-2", "sts-b"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--no-plain", action="store_true", help="do not tune without exits too")
    parser.add_argument("--part", choices=["tune", "measure", "both"], default="both")
    parser.add_argument("--timed", type=int, help="dev examples that are timed, at most")
    parser.add_argument("--rounds", type=int, default=3, help="of timing, in turns")
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for task in options.tasks:
        exits = tune(options, task, True)
        plain = None if options.no_plain else tune(options, task, False)
        if options.part == "tune":
            continue
        rows = [measure(options, task, seed) for seed in range(1, options.seeds + 1)]
        summary(task, plain, exits, rows)


if __name__ == "__main__":
    main()
