"""Prepare a corpus, and look into one."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C, or the SIGTERM of a cluster, ends the command with a word instead of a traceback."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        print("litebert: stopped; the same command goes on where it was", file=sys.stderr)
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def prepare(
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders or globs (txt, jsonl, csv, tsv, parquet; also .gz, .xz, .zst), "
            "- for standard input, hf:NAME for a Hugging Face dataset."
        ),
    ],
    tokenizer: Annotated[Path, typer.Option(help="A tokenizer's folder or model file.")],
    out: Annotated[Path, typer.Option(help="The folder of the store to write.")],
    language: Annotated[str, typer.Option(help="Language of the text, for sentence ends.")] = "en",
    format: Annotated[
        str,
        typer.Option(
            help="auto (by name; .txt is paragraphs), sentences (one a line, blank line between "
            "documents), paragraphs (blank line between documents), file (the whole file is one "
            "document), jsonl, csv, tsv, parquet."
        ),
    ] = "auto",
    field: Annotated[str, typer.Option(help="The key or column that holds the text.")] = "text",
    held_out: Annotated[
        float, typer.Option(help="Share of documents kept for evaluation, chosen by content.")
    ] = 0.01,
    drop_duplicates: Annotated[
        bool, typer.Option("--drop-duplicates", help="Leave out documents seen before.")
    ] = False,
    on_error: Annotated[
        str, typer.Option(help="stop at the first bad record, or skip and count them.")
    ] = "stop",
    part: Annotated[
        str, typer.Option(help="Prepare only part I of N, e.g. 2/8; list the parts to join them.")
    ] = "1/1",
    workers: Annotated[int | None, typer.Option(help="Processes; by default one a core.")] = None,
) -> None:
    """Turn raw text into a store of token ids, for pretraining.

    Streams in bounded memory, and can be stopped at any time: the same command goes on where it
    was. Documents and sentences are kept; segments and masks are made when training.

    Example: litebert prepare wiki/*.jsonl.gz --tokenizer my-tokenizer --out corpus
    """
    from litebert.cli.progress import preparing
    from litebert.corpus.parts import parse_part
    from litebert.corpus.prepare import PrepareSettings
    from litebert.corpus.prepare import prepare as run
    from litebert.corpus.report import sample

    settings = PrepareSettings.build(
        {
            "reading": {"format": format, "field": field, "on_error": on_error},
            "language": language,
            "held_out": held_out,
            "drop_duplicates": drop_duplicates,
        },
        "litebert prepare",
    )
    with _stoppable(), preparing() as watch:
        made = run(
            inputs, tokenizer, out, settings, part=parse_part(part), workers=workers, watch=watch
        )
    total = made.store.total
    print(
        f"{out}: {total.documents:,} documents, {total.sentences:,} sentences, "
        f"{total.tokens:,} tokens from {total.bytes / 1e6:,.1f} MB of text, "
        f"{total.unknown / max(total.tokens, 1):.3%} unknown"
    )
    if made.progress.there:
        print("it was there before; the inputs were not read again")
    if made.store.duplicates:
        print(f"{made.store.duplicates:,} documents are left out as duplicates")
    if made.progress.reused:
        print(f"{made.progress.reused:,} shards were there from an earlier run")
    for reason, count in total.skipped.items():
        message = made.progress.left_out.messages.get(reason, "")
        print(f"skipped {count:,}: {reason}" + (f" (first: {message})" if message else ""))
    print(f"sample: {sample(made.store)}")
    print(f"next: litebert inspect {out}")


def inspect(
    stores: Annotated[list[Path], typer.Argument(help="A store, or all parts of one.")],
    check: Annotated[
        bool, typer.Option("--check", help="Also compare every file with its checksum.")
    ] = False,
    arrangement: Annotated[
        str | None,
        typer.Option(help="Show samples of an arrangement: albert, bert, full-sentences, …"),
    ] = None,
    length: Annotated[int, typer.Option(help="Tokens of a sample at most.")] = 128,
    samples: Annotated[int, typer.Option(help="How many samples to show.")] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show what a store holds: sizes, lengths, unknown pieces, a sample.

    Example: litebert inspect corpus --arrangement albert
    """
    from rich.console import Console

    from litebert.corpus.loader import LoaderSettings
    from litebert.corpus.report import inspect as look
    from litebert.corpus.report import show, show_samples

    report = look(stores, check=check)
    if as_json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return
    shown: list[object] = [show(report)]
    if arrangement:
        wanted = {"arrangement": arrangement, "length": length, "batch": samples}
        settings = LoaderSettings.build(wanted, "litebert inspect")
        shown.append(show_samples(stores, settings, samples))
    Console().print(*shown)
