"""Train, and see how it goes."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer


def pretrain(
    preset: Annotated[
        str, typer.Argument(help="A shipped preset (litebert presets) or a TOML file of your own.")
    ],
    corpus: Annotated[
        list[Path], typer.Option(help="A store made by `litebert prepare`; repeat for its parts.")
    ],
    out: Annotated[Path, typer.Option(help="The run's folder; the same one continues a run.")],
    budget: Annotated[
        str | None,
        typer.Option(help="How long: 30m (s, h, d), 200Mtok, 125000steps; else the preset's."),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", help="Go on from a model folder, ours or Hugging Face's."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting, e.g. optimizer.rate=5e-4; repeatable."),
    ] = None,
) -> None:
    """Pretrain an encoder on a prepared corpus.

    One budget decides steps, warm-up and decay. Ctrl-C saves; the same command goes on where it
    was, also after a crash. On several devices: torchrun --nproc-per-node 2 -m litebert pretrain …

    Example: litebert pretrain albert-mini --corpus corpus --out run --budget 30m
    """
    began = time.monotonic()  # a budget of time covers the imports too
    from litebert.cli.live import watching
    from litebert.train.pretrain import pretrain as run

    with watching() as watcher:
        result = run(
            preset, corpus, out, budget=budget, start=from_, sets=set_ or (), watcher=watcher,
            began=began,
        )  # fmt: skip
    if not result.finished:
        print(
            f"litebert: stopped at step {result.step:,} and saved; the same command goes on",
            file=sys.stderr,
        )
        raise typer.Exit(130)
    if watcher.leads:
        print(
            f"{out / 'model'}: {result.step:,} steps, {result.tokens:,} tokens, "
            f"{result.seconds:,.0f} s"
        )
        print(f"next: litebert evaluate {out} --corpus {corpus[0]}")


def evaluate(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or any model folder.")],
    corpus: Annotated[
        list[Path], typer.Option(help="A store made by `litebert prepare`; repeat for its parts.")
    ],
    sequences: Annotated[int, typer.Option(help="Held-out sequences to look at, at most.")] = 2000,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a sequence; by default as in the run.")
    ] = None,
    arrangement: Annotated[
        str | None, typer.Option(help="How sentences become samples; by default as in the run.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure a pretrained model on held-out text: masked words, sentence order, next sentence.

    A model with a pair head is asked both pair questions, whichever it learned (Table 5 of the
    paper). Intervals are 95 %.

    Example: litebert evaluate run --corpus corpus
    """
    from litebert.train.evaluate import evaluate as look

    report = look(folder, corpus, sequences=sequences, length=length, arrangement=arrangement)
    if as_json:
        print(json.dumps(report, indent=2))
        return
    print(f"held-out text, {report['length']} tokens a sequence")
    for name, entry in report.items():
        if not isinstance(entry, dict):
            continue
        low, high = entry["interval"]
        line = f"{name:16} loss {entry['loss']:.3f}   right {entry['accuracy']:.1%} "
        line += f"({low:.1%} to {high:.1%} of {entry['count']:,})"
        if name == "masked_language":
            line += f"   guessing by frequency: {report['unigram']:.3f}"
        if "found" in entry:
            line += f"   of the replaced ones {entry['found']:.1%}"
        print(line)
