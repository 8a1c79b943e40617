"""Texts as vectors: the mean of a text's tokens, or its [CLS]. Useful before anyone labels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import FormatError, SettingsError
from litebert.base.files import check_writable, write_atomic
from litebert.base.runtime import keep_freed_memory
from litebert.inference.engine import Engine
from litebert.inference.jobs import OnProgress, no_progress, run_job
from litebert.inference.pretrained import embed_job, embed_settings
from litebert.model.model import Model
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.tasks.classification import Classification
from litebert.tasks.readers.column_mapping import ColumnMapping
from litebert.tasks.readers.formats import format_of_name, format_of_text
from litebert.tasks.readers.text_file import Say, quiet, read_lines, read_text
from litebert.text.tokenizer import Tokenizer

Texts = str | Path | Sequence[str]  # a file of them, or they themselves


def embed(
    model: str | Path, input: Texts | None = None, out: str | Path | None = None, *,
    text: Sequence[str] = (), pooling: str | None = None,
    max_length: int | None = None, normalize: bool | None = None, column: str | None = None,
    precision: str = "fp32", depth: int | None = None, say: Say = quiet,
    on_progress: OnProgress = no_progress,
) -> NDArray[np.float32]:  # fmt: skip
    """Turn the texts of a file into vectors, for search and clustering; no labels needed.

    A sentence encoder says itself how: the vectors are those of sentence-transformers.

    Example: litebert embed run --input notes.txt --out notes.npy

    Example: litebert embed run --text "a fine film"

    Args:
        model: A run, or any model folder with a tokenizer in it.
        input: Texts: a file with one a line, a table (.csv, .tsv, .jsonl, .json, .parquet) with a
            column of them, or "-" for standard input; in Python also a list of them.
        out: Where the vectors go, as a .npy file; without it the command prints them, a list of
            numbers a line.
        text: Texts themselves, instead of `input`.
        pooling: `mean` of all tokens of a text, or `first`, its [CLS]; by default as the model
            says, else mean.
        max_length: Tokens of a text, at most; the rest is cut off. By default as the model says,
            else as many as it can read.
        normalize: Make every vector's length 1; by default as the model says, else not.
        column: The column of a table that is the text, by its name or its number from 0, where
            its name does not say so.
        precision: fp32; or bf16 or int8, faster where the hardware has it and less exact.
        depth: Layers to run; encoders that share all layers can run any number.
        say: Told how many texts were cut off, and how the file was read.
        on_progress: Called with how many texts are done, and of how many.

    Returns:
        The vectors, (texts, hidden size).
    """
    if (input is None) == (not text):
        raise SettingsError("give --input FILE (- for standard input), or texts with --text")
    keep_freed_memory()
    if out is not None:
        check_writable(Path(out))
    texts = list(text) if input is None else _texts(input, column, say)
    engine = Engine(model, precision, depth)
    settings = embed_settings(engine.model, engine.folder, pooling, max_length, normalize)
    job = embed_job(engine.model, engine.tokenizer, texts, engine.depth, settings, say=say)
    vectors = engine.answer(job, on_progress)
    if out is not None:
        stream = io.BytesIO()
        np.save(stream, vectors, allow_pickle=False)
        write_atomic(Path(out), stream.getvalue())
    return vectors


def embed_texts(
    model: Model, tokenizer: Tokenizer, texts: Sequence[str],
    settings: SentenceEncoderSettings | None = None, *, say: Say = quiet,
) -> NDArray[np.float32]:  # fmt: skip
    """One row a text, (texts, H), by a model at hand; longer texts are cut off."""
    settings = settings or model.sentence_encoder or SentenceEncoderSettings()
    depth = model.config.num_hidden_layers
    return run_job(model, embed_job(model, tokenizer, texts, depth, settings, say=say))


def _texts(input: Texts, column: str | None, say: Say) -> list[str]:
    if not isinstance(input, str | Path):
        return list(input)
    path, given = Path(input), ColumnMapping.build({"text": column} if column else None)
    format = format_of_name(path) or format_of_text(read_text(path))
    if format == "text" and not column:  # a vector for every line, blank ones too
        texts = read_lines(path)
        if not any(text.strip() for text in texts):
            raise FormatError(f"{path}: holds no text")
        if blank := sum(not text.strip() for text in texts):
            say(f"{path}: {blank:,} blank lines get vectors, too, so line N has vector N")
        return texts
    examples, _ = Classification.read_table(path, given, labelled=False, say=say)
    return [example.first for example in examples]
