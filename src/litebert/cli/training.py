"""Train, and see how it goes."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

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
    folder: Annotated[
        list[Path], typer.Argument(help="A run's folder, or any model folder; tuned ones may vote.")
    ],
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="A store made by `litebert prepare`; repeat for its parts."),
    ] = None,
    input: Annotated[
        Path | None,
        typer.Option(help="For a fine-tuned model: labelled examples, or a published folder."),
    ] = None,
    split: Annotated[str, typer.Option(help="Of a published task's folder.")] = "dev",
    column: Annotated[
        list[str] | None,
        typer.Option(help="With --input: which column is what, e.g. text=body; repeatable."),
    ] = None,
    repair: Annotated[
        bool, typer.Option(help="Move answers that are not at their offset to the nearest place.")
    ] = False,
    sequences: Annotated[int, typer.Option(help="Held-out sequences to look at, at most.")] = 2000,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a sequence; by default as in the run.")
    ] = None,
    arrangement: Annotated[
        str | None, typer.Option(help="How sentences become samples; by default as in the run.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure a model: a pretrained one on held-out text, a fine-tuned one on labelled examples.

    A model with a pair head is asked both pair questions, whichever it learned (Table 5 of the
    paper). Intervals are 95 %.

    Example: litebert evaluate run --corpus corpus

    Example: litebert evaluate tuned --input glue/SST-2
    """
    from litebert.base.errors import SettingsError

    if (corpus is None) == (input is None) or (corpus is not None and len(folder) > 1):
        raise SettingsError(
            "give --corpus STORE to measure one pretrained model, or --input EXAMPLES for "
            "fine-tuned ones"
        )
    if input is not None:
        from litebert.cli.finetuning import columns_of
        from litebert.inference.evaluate import evaluate_task

        evaluation = evaluate_task(
            folder, input, split=split, columns=columns_of(column), repair=repair
        )
        report = evaluation.to_json()
        print(json.dumps(report, indent=2) if as_json else _scores(report))
        return
    from litebert.train.evaluate import evaluate as look

    report = look(
        folder[0], corpus or [], sequences=sequences, length=length, arrangement=arrangement
    )
    print(json.dumps(report, indent=2) if as_json else _held_out(report))


def _held_out(report: dict[str, Any]) -> str:
    """What a pretrained model knows, in lines."""
    lines = [f"held-out text, {report['length']} tokens a sequence"]
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
        lines.append(line)
    return "\n".join(lines)


def _scores(report: dict[str, Any]) -> str:
    """How a fine-tuned model did, in lines."""
    lines = [f"{report['task']}, {report['examples']:,} examples"]
    for name, value in report["scores"].items():
        low, high = report["intervals"].get(name, (None, None))
        lines.append(
            f"{name:12} {value:.4f}" + ("" if low is None else f" ({low:.4f} to {high:.4f})")
        )
    for name, row in report.get("labels", {}).items():
        lines.append(
            f"  {name:12} precision {row['precision']:.3f}  recall {row['recall']:.3f}  "
            f"F1 {row['f1']:.3f}  of {row['support']:,}"
        )
    if "confusion" in report:
        lines.append("confusion (rows truth, columns guess):")
        lines += ["  " + "  ".join(f"{n:6,}" for n in row) for row in report["confusion"]]
    return "\n".join(lines)
