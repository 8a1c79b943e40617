"""What fine-tuning reaches: an encoder of ours against untrained copies of itself; a trained BERT.

    python benchmarks/tasks.py --data DATA --encoder RUN --corpus STORE --out tasks
    python benchmarks/tasks.py --data DATA --trained FOLDER --out tasks

RUN is a run of `litebert pretrain` on STORE; its copies begin at random, and with the start that
its preset names (word vectors). FOLDER is a trained encoder as Hugging Face saves it, of 384 units
or so. DATA has glue/, ner/WikiANN/en/ and squad/, with the published files in them; a part of SQuAD
is enough. Fine-tuned runs are kept in --out, so the same command goes on; `--only sts-b`
does one task. One core takes about half an hour for ours (`OMP_NUM_THREADS=1`), two hours for the
trained one with 5,500 questions of SQuAD.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import litebert
from litebert.base.files import read_json
from litebert.cli.live import live_view
from litebert.configs.schema import Preset
from litebert.inference.evaluate import evaluate_task
from litebert.tasks.metrics.classification import accuracy
from litebert.tasks.published.glue import read_glue
from litebert.train.build import save_untrained
from litebert.train.run_folder import RUN

DATA = Path(os.environ.get("LITEBERT_DATA", Path(__file__).parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class Job:
    """One task with its bar: a score to reach, or how far to be ahead of the random copy."""

    task: str
    data: str
    metric: str
    overrides: tuple[str, ...] = ()
    bar: float | None = None
    ahead: float | None = None


OURS = (
    Job("ner", "ner/WikiANN/en", "entity_f1", ahead=0.0),
    Job("sts-b", "glue", "spearman", ahead=0.15),
    Job("sst-2", "glue", "accuracy", ("epochs=1", "pooling=mean"), bar=0.80, ahead=0.0),
)
TRAINED = (
    Job("sst-2", "glue", "accuracy", ("epochs=1",), bar=0.88),
    Job("sts-b", "glue", "spearman", ("epochs=3",), bar=0.80),
    Job("mrpc", "glue", "f1", ("epochs=3",), bar=0.84),
    Job("rte", "glue", "accuracy", ("epochs=2",)),
    Job(
        "squad-1.1",
        "squad",
        "f1",
        ("epochs=1", "batch_size=16", "learning_rate=1.5e-4", "evaluations=1"),
        bar=0.40,
    ),
)


def tune(job: Job, start: Path, name: str, options: argparse.Namespace) -> float:
    """Fine-tune once (or look up what was done before) and print the score with its interval."""
    out, data = options.out / f"{name}-{job.task}", options.data / job.data
    with live_view() as view:
        done = litebert.finetune(
            start, job.task, out, data=data, overrides=[*job.overrides, *options.set],
            seeds=options.seeds, repair=job.task.startswith("squad"), callbacks=[view],
        )  # fmt: skip
    assert done.report is not None, "stopped"
    report = evaluate_task([out], data, repair=job.task.startswith("squad"))
    interval, value = report.intervals[job.metric], report.scores[job.metric]
    seeds = [f"{result.value(job.metric):.4f}" for result in done.report.seeds]
    print(
        f"{job.task:10} {name:14} {job.metric} {value:.4f} ({interval.low:.4f} to "
        f"{interval.high:.4f} over examples; seeds {', '.join(seeds)})",
        flush=True,
    )
    return value


def copies(options: argparse.Namespace) -> dict[str, Path]:
    """The encoder, and what it was before its first step with either start."""
    preset = Preset.build(read_json(options.encoder / RUN)["settings"], "the run's settings")
    arms = {"pretrained": options.encoder}
    for name, initialization in (("word-vectors", "corpus"), ("random", "truncated_normal")):
        arms[name] = options.out / f"start-{name}"
        if not arms[name].is_dir():
            fresh = preset.model_copy(update={"initialization": initialization})
            save_untrained(fresh, options.corpus, arms[name])
    return arms


def verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def compare_ours(options: argparse.Namespace) -> None:
    arms = copies(options)
    for job in wanted(OURS, options):
        values = {name: tune(job, start, name, options) for name, start in arms.items()}
        ours = values.pop("pretrained")
        if job.bar is not None:
            print(f"{job.task:10} {ours:.4f}, bar {job.bar:.2f}: {verdict(ours >= job.bar)}")
        for name, value in values.items():
            bar = f", bar {job.ahead:+.2f}: {verdict(ours - value >= (job.ahead or 0))}"
            shown = bar if name == "random" else ""
            print(f"{job.task:10} {ours - value:+.4f} ahead of {name}{shown}", flush=True)


def try_trained(options: argparse.Namespace) -> None:
    for job in wanted(TRAINED, options):
        value = tune(job, options.trained, "trained", options)
        bar, what = job.bar, "bar"
        if bar is None:
            examples = read_glue(job.task, options.data / job.data, "dev")
            labels = [str(example.label) for example in examples]
            bar = max(accuracy(labels, [one] * len(labels)) for one in set(labels))
            what = "the largest class"
        print(f"{job.task:10} {value:.4f}, {what} {bar:.4f}: {verdict(value > bar)}", flush=True)


def wanted(jobs: tuple[Job, ...], options: argparse.Namespace) -> list[Job]:
    return [job for job in jobs if not options.only or job.task in options.only]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--encoder", type=Path, help="a run of `litebert pretrain`")
    parser.add_argument("--corpus", type=Path, help="what it was pretrained on")
    parser.add_argument("--trained", type=Path, help="a trained encoder's folder")
    parser.add_argument("--out", type=Path, default=Path("tasks"))
    parser.add_argument("--only", action="append", help="one task; repeatable")
    parser.add_argument("--set", action="append", default=[], help="as of `litebert finetune`")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    if options.encoder is None and options.trained is None:
        parser.error("give --encoder RUN --corpus STORE, or --trained FOLDER")
    if options.encoder is not None:
        compare_ours(options)
    if options.trained is not None:
        try_trained(options)


if __name__ == "__main__":
    main()
