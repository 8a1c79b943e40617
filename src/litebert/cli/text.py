"""Tokenizers and corpora: what these commands print."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import litebert
from litebert.cli.progress import messages, preparing, say
from litebert.cli.training import STOPPED, name_of
from litebert.corpus.inspect import printable, sample_text, show

LANGUAGE = "en"  # by default, here and of `prepare`


def train_tokenizer(out: Path, language: str, **options: Any) -> None:
    """What was trained."""
    with messages() as on_progress:
        made = litebert.train_tokenizer(
            out=out, language=language, on_progress=on_progress, say=say, **options
        )
    name = name_of(out)
    said = "" if language == LANGUAGE else f" --language {language}"
    print(
        f"{name}: {made.kind}, {made.vocab_size:,} tokens, normalization {made.normalization}\n"
        f"next: litebert prepare YOUR_TEXT --tokenizer {name} --out corpus{said}"
    )


def show_tokenizer(**options: Any) -> None:
    """A row a token."""
    shown = litebert.show_tokenizer(**options)
    encoding = shown.encoding
    table = Table("token", "id", "from", "to", "in the text", "starts a word")
    rows = zip(encoding.tokens, encoding.ids, encoding.offsets, encoding.word_starts, strict=True)
    for token, number, (start, end), is_start in rows:
        table.add_row(
            Text(printable(token)), str(number), str(start), str(end),
            Text(printable(shown.text[start:end])), "yes" if is_start else "",
        )  # fmt: skip
    Console().print(table)
    print(f"normalized: {printable(shown.normalized)}")
    print(f"decoded: {printable(shown.decoded)}")


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C, or the SIGTERM of a cluster, ends the command with a word instead of a traceback."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        print("litebert: stopped; run the same command to resume", file=sys.stderr)
        raise typer.Exit(STOPPED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def prepare(out: Path, **options: Any) -> None:
    """What the store holds, and what was left out."""
    with _stoppable(), preparing() as on_progress:
        made = litebert.prepare(out=out, on_progress=on_progress, say=say, **options)
    total, progress = made.store.total, made.progress
    print(
        f"{name_of(out)}: {total.documents:,} documents, {total.sentences:,} sentences, "
        f"{total.tokens:,} tokens from {total.text_bytes / 1e6:,.1f} MB of text, "
        f"{total.unknown_tokens / max(total.tokens, 1):.3%} unknown"
    )
    if progress.already_there:
        print("it was there before; the inputs were not read again")
    if made.store.duplicates:
        print(f"{made.store.duplicates:,} documents are left out as duplicates")
    if progress.reused_shards:
        print(f"{progress.reused_shards:,} shards were there from an earlier run")
    for reason, count in total.skipped.items():
        message = progress.skipped.messages.get(reason, "")
        print(f"skipped {count:,}: {reason}" + (f" (first: {message})" if message else ""))
    print(f"sample: {sample_text(made.store)}")
    print(f"next: litebert inspect {name_of(out)}")


def inspect(as_json: bool, **options: Any) -> None:
    """Tables, or JSON."""
    from litebert.tasks.report import DataReport, show_data

    report = litebert.inspect(say=say, **options)
    if as_json:
        print(json.dumps(report.as_dict(), indent=2, ensure_ascii=False))
    else:
        shown = show_data(report) if isinstance(report, DataReport) else show(report)
        Console().print(shown)
