"""Train, and see how it goes."""

from __future__ import annotations

import sys
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
    from litebert.cli.live import watching
    from litebert.train.pretrain import pretrain as run

    with watching() as watcher:
        result = run(
            preset, corpus, out, budget=budget, start=from_, sets=set_ or (), watcher=watcher
        )
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
