"""Texts as vectors: the mean of a text's tokens, or its [CLS]. Useful before anyone labels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import FormatError, SettingsError
from litebert.base.files import check_writable, write_atomic
from litebert.base.runtime import Precision, default_device, keep_freed_memory
from litebert.inference.model_folder import open_tokenizer
from litebert.inference.run import Progress, no_progress, run_batches
from litebert.model.folder import find_model_folder
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.classification import Classification
from litebert.tasks.features import NO_LABEL, Sequences, encode_all
from litebert.tasks.readers.column_mapping import ColumnMapping
from litebert.tasks.readers.formats import format_of_name, format_of_text
from litebert.tasks.readers.text_file import Say, quiet, read_lines, read_text
from litebert.text.tokenizer import Tokenizer

MIN_LENGTH = 3
Texts = str | Path | Sequence[str]  # a file of them, or they themselves


def embed(
    model: str | Path, input: Texts, out: str | Path, *,
    pooling: str = "mean", max_length: int = 128, column: str | None = None, say: Say = quiet,
    on_progress: Progress = no_progress,
) -> NDArray[np.float32]:  # fmt: skip
    """Turn the texts of a file into vectors, for search and clustering; no labels needed.

    Example: litebert embed run --input notes.txt --out notes.npy

    Args:
        model: A run, or any model folder with a tokenizer in it.
        input: Texts: a file with one a line, a table (.csv, .tsv, .jsonl, .json, .parquet) with a
            column of them, or "-" for standard input; in Python also a list of them.
        out: Where the vectors go, as a .npy file.
        pooling: `mean` of all tokens of a text, or `first`, its [CLS].
        max_length: Tokens of a text, at most; the rest is cut off.
        column: The column of a table that is the text, by its name or its number from 0, where
            its name does not say so.
        say: Told what the user should know, a sentence each.
        on_progress: Called with how many texts are done, and of how many.

    Returns:
        The vectors, (texts, hidden size).
    """
    keep_freed_memory()
    check_writable(Path(out))
    folder = find_model_folder(Path(model))
    loaded = Model.load(folder).to(default_device())
    texts = _texts(input, column, say)
    vectors = embed_texts(
        loaded, open_tokenizer(folder), texts, pooling=pooling, max_length=max_length,
        on_progress=on_progress,
    )  # fmt: skip
    stream = io.BytesIO()
    np.save(stream, vectors, allow_pickle=False)
    write_atomic(Path(out), stream.getvalue())
    return vectors


def embed_texts(
    model: Model, tokenizer: Tokenizer, texts: Sequence[str], *, pooling: str = "mean",
    max_length: int = 128, precision: Precision = "auto", on_progress: Progress = no_progress,
) -> NDArray[np.float32]:  # fmt: skip
    """One row a text, (texts, H); longer texts are cut off."""
    if pooling not in ("mean", "first"):
        raise SettingsError(f"pooling {pooling!r}: choose mean or first")
    if max_length < MIN_LENGTH:
        raise SettingsError(
            f"max_length {max_length}: at least {MIN_LENGTH}, for [CLS], a token and [SEP]"
        )
    room = min(max_length, model.config.longest_sequence)
    sequences = Sequences(tokenizer)
    for number, ids in enumerate(encode_all(tokenizer, texts)):
        sequences.add(number, NO_LABEL, ids[: room - sequences.extra])

    def pooled(state: State, inputs: Inputs) -> list[NDArray[np.float32]]:
        rows = state.mean() if pooling == "mean" else state.first()
        return list(rows.float().cpu().numpy())

    rows = run_batches(
        model, sequences.batch(), pooled,
        lambda batch: batch.starts if pooling == "first" else None, precision=precision,
        on_progress=on_progress,
    )  # fmt: skip
    return np.array(rows, np.float32).reshape(len(texts), model.config.hidden_size)


def _texts(input: Texts, column: str | None, say: Say) -> list[str]:
    if not isinstance(input, str | Path):
        return list(input)
    path, given = Path(input), ColumnMapping.build({"text": column} if column else None)
    format = format_of_name(path) or format_of_text(read_text(path))
    if format == "text" and not column:  # a vector for every line, blank ones too
        texts = read_lines(path)
        if not any(text.strip() for text in texts):
            raise FormatError(f"{path}: holds no text")
        return texts
    examples, _ = Classification.read_table(path, given, labelled=False, say=say)
    return [example.first for example in examples]
