"""Texts as vectors: the mean of a text's tokens, or its [CLS]. Useful before anyone labels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import FormatError
from litebert.base.files import check_writable, write_atomic
from litebert.base.runtime import keep_freed_memory
from litebert.inference.engine import Engine
from litebert.inference.jobs import run_job
from litebert.inference.pretrained import embed_job, embed_settings
from litebert.model.model import Model
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.tasks.classification import Classification
from litebert.tasks.readers.column_mapping import ColumnMapping
from litebert.tasks.readers.rows import is_table
from litebert.tasks.readers.text_file import Say, quiet, read_lines
from litebert.text.tokenizer import Tokenizer


def embed(
    model: str | Path, input: str | Path, out: str | Path, *, pooling: str | None = None,
    max_length: int | None = None, normalize: bool | None = None, column: str | None = None,
    precision: str = "fp32", depth: int | None = None, say: Say = quiet,
) -> NDArray[np.float32]:  # fmt: skip
    """Turn the texts of a file into vectors, for search and clustering; no labels needed.

    A sentence encoder says itself how: the vectors are those of sentence-transformers.

    Example: litebert embed run --input notes.txt --out notes.npy

    Args:
        model: A run, or any model folder with a tokenizer in it.
        input: Texts: one a line, or a table (.csv, .tsv, .jsonl, .parquet) with a column of them.
        out: Where the vectors go, as a .npy file.
        pooling: `mean` of all tokens of a text, or `first`, its [CLS]; by default as the model
            says, else mean.
        max_length: Tokens of a text, at most; the rest is cut off. By default as the model says,
            else as many as it can read.
        normalize: Make every vector's length 1; by default as the model says, else not.
        column: The column of a table that is the text, where its name does not say so.
        precision: fp32; or bf16 or int8, faster where the hardware has it and less exact.
        depth: Layers to run; encoders that share all layers can run any number.
        say: Told how many texts were cut off.

    Returns:
        The vectors, (texts, hidden size).
    """
    keep_freed_memory()
    check_writable(Path(out))
    texts = _texts(Path(input), column)
    engine = Engine(model, precision, depth)
    settings = embed_settings(engine.model, engine.folder, pooling, max_length, normalize)
    vectors = engine.answer(
        embed_job(engine.model, engine.tokenizer, texts, engine.depth, settings, say=say)
    )
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


def _texts(path: Path, column: str | None) -> list[str]:
    if is_table(path):
        given = ColumnMapping.build({"text": column} if column else None)
        examples, _ = Classification.read_table(path, given, labelled=False, say=quiet)
        return [example.first for example in examples]
    texts = [line.rstrip("\r") for line in read_lines(path)]
    if not any(text.strip() for text in texts):
        raise FormatError(f"{path}: holds no text")
    return texts
