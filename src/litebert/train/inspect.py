"""`litebert inspect`: what is in a store of token ids, or in a file of labelled examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from litebert.base.errors import SettingsError
from litebert.corpus.inspect import StoreReport, inspect_store
from litebert.corpus.quality import write_drop_list
from litebert.corpus.store import STORE
from litebert.model.folder import find_model_folder
from litebert.tasks.data import own_files, published_examples
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.registry import KINDS, find_kind
from litebert.tasks.report import DataReport, Part, report_on
from litebert.tasks.source import DataSource
from litebert.tasks.task import Task
from litebert.text.tokenizer import load_tokenizer


def inspect(
    inputs: str | Path | Sequence[str | Path],
    *,
    task: str | None = None,
    dev: str | Path | None = None,
    columns: Sequence[str] | Mapping[str, str] = (),
    tokenizer: str | Path | None = None,
    check: bool = False,
    input_format: str | None = None,
    max_length: int = 128,
    samples: int = 4,
    quality: bool = False,
    drop: str | Path | None = None,
    say: Say = quiet,
) -> StoreReport | DataReport:
    """Show what a store holds, or what is in examples before you train on them.

    Of a store: sizes, lengths, unknown tokens, a sample; with --quality what in it may not be worth
    training on. Of examples (with --task): the balance of
    labels, duplicates within and across train and dev, the same text with different labels, rows
    that cannot be read, long texts, markup, unknown tokens.

    Example: litebert inspect corpus --input-format albert

    Example: litebert inspect corpus --quality --drop odd.json

    Example: litebert inspect reviews.csv --task classify --tokenizer run

    Args:
        inputs: The folder of a store, or of all parts of one; with `task`, a file of examples, a
            folder with files named train and dev, or a published task's folder.
        task: What the examples are for: classify, pair, regress, tag, qa, choice, or a published
            task.
        dev: Examples to evaluate on, which must not be in the training set.
        columns: Which column of a table is what, where names do not say so: text=body.
        tokenizer: A run, a model folder or a tokenizer, to count tokens and unknown ones with.
        check: Of a store: also compare every file with its checksum.
        input_format: Of a store: show samples of an input format: albert, bert, full-sentences, …
        max_length: Tokens of such a sample at most; of examples, what counts as long.
        samples: How many of them to show.
        quality: Of a store: near-duplicates, boilerplate, languages, odd documents.
        drop: With `quality`: a file to write the odd documents to, for `litebert prepare --drop`.
        say: Told what the user should know, a sentence each.
    """
    paths = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    if task is None:
        if not (Path(paths[0]) / STORE).exists() and Path(paths[0]).exists():
            raise SettingsError(
                f"{paths[0]}: no store of `litebert prepare`; for a file of examples say what they "
                "are for, as in --task classify"
            )
        if drop is not None and not quality:
            raise SettingsError("--drop lists what --quality finds: give both")
        report = inspect_store(
            paths, check=check, input_format=input_format, max_length=max_length, samples=samples,
            quality=quality,
        )  # fmt: skip
        if drop is not None and report.quality is not None:
            count = write_drop_list(report.quality, Path(drop))
            say(f"{drop}: {count:,} documents to leave out: `litebert prepare … --drop {drop}`")
        return report
    if len(paths) != 1:
        raise SettingsError("name one file of examples, or a folder; --dev names the other file")
    source = DataSource.build(paths[0], dev=dev, columns=columns)
    return _inspect_examples(task, source, tokenizer, max_length, say)


def _inspect_examples(
    task: str, source: DataSource, tokenizer: str | Path | None, max_length: int, say: Say
) -> DataReport:
    loaded = None if tokenizer is None else load_tokenizer(_tokenizer_folder(Path(tokenizer)))
    if task in KINDS:
        kind = find_kind(task)
        train, dev = own_files(task, source, say)
        parts = [_own(kind, train, source, say), dev and _own(kind, dev, source, say)]
    else:
        kind, found = published_examples(task, source, say)
        parts = [Part(f"{source.data}, {split}", found[split]) for split in list(found)[:2]]
    return report_on(kind, parts[0], parts[1], loaded, max_length)


def _own(kind: type[Task], path: Path, source: DataSource, say: Say) -> Part:
    refused: list[str] = []
    source = replace(source, refused=refused)
    return Part(str(path), kind.read_file(path, source, labelled=True, say=say), refused)


def _tokenizer_folder(path: Path) -> Path:
    """A tokenizer as it is, or the one of a run's model."""
    return find_model_folder(path) if (path / "model").is_dir() else path
