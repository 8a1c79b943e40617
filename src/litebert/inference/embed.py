"""Texts as vectors: the mean of a text's tokens, or its [CLS]. Useful before anyone labels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray

from litebert.base.errors import FormatError, SettingsError
from litebert.base.files import check_writable, write_atomic
from litebert.base.runtime import Precision, default_device, keep_freed_memory
from litebert.inference.model_folder import open_tokenizer
from litebert.inference.run import run_batches
from litebert.model.folder import find_model_folder
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.sentence_encoder import MODULES, SentenceEncoderSettings
from litebert.tasks.classification import Classification
from litebert.tasks.features import NO_LABEL, Sequences, encode_all
from litebert.tasks.readers.column_mapping import ColumnMapping
from litebert.tasks.readers.rows import is_table
from litebert.tasks.readers.text_file import Say, quiet, read_lines
from litebert.text.tokenizer import Tokenizer


def embed(
    model: str | Path, input: str | Path, out: str | Path, *, pooling: str | None = None,
    max_length: int | None = None, normalize: bool | None = None, column: str | None = None,
    precision: Precision = "fp32", say: Say = quiet,
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
        precision: fp32, or bf16, which is faster where the hardware has it and less exact.
        say: Told how many texts were cut off.

    Returns:
        The vectors, (texts, hidden size).
    """
    if precision not in get_args(Precision):
        raise SettingsError(f"--precision {precision}: choose {', '.join(get_args(Precision))}")
    keep_freed_memory()
    check_writable(Path(out))
    folder = find_model_folder(Path(model))
    loaded = Model.load(folder).to(default_device())
    settings = settings_for(loaded, folder, pooling, max_length, normalize)
    texts = _texts(Path(input), column)
    vectors = embed_texts(
        loaded, open_tokenizer(folder), texts, settings, precision=precision, say=say
    )
    stream = io.BytesIO()
    np.save(stream, vectors, allow_pickle=False)
    write_atomic(Path(out), stream.getvalue())
    return vectors


def settings_for(
    model: Model, folder: Path, pooling: str | None = None, max_length: int | None = None,
    normalize: bool | None = None,
) -> SentenceEncoderSettings:  # fmt: skip
    """What the user asked for, else what the model says of itself; its `folder` is for errors."""
    told = model.sentence_encoder or SentenceEncoderSettings()
    if told.unknown and pooling is None:
        raise SettingsError(
            f"{folder}: its {MODULES} asks for {', '.join(told.unknown)}, which is not followed "
            "here; --pooling mean or first takes the encoder's tokens as they are"
        )
    asked = {"pooling": pooling, "max_length": max_length, "normalize": normalize}
    given = {name: value for name, value in asked.items() if value is not None}
    return SentenceEncoderSettings.build({**told.model_dump(), **given}, "embed")


def embed_texts(
    model: Model, tokenizer: Tokenizer, texts: Sequence[str],
    settings: SentenceEncoderSettings | None = None, *, precision: Precision = "fp32",
    say: Say = quiet,
) -> NDArray[np.float32]:  # fmt: skip
    """One row a text, (texts, H), by default as the model says; longer texts are cut off."""
    settings = settings or model.sentence_encoder or SentenceEncoderSettings()
    sequences, longest = Sequences(tokenizer), model.config.longest_sequence
    room = min(settings.max_length or longest, longest) - sequences.extra
    truncated = 0
    for number, ids in enumerate(encode_all(tokenizer, _prompted(texts, settings))):
        sequences.add(number, NO_LABEL, ids[:room])
        truncated += len(ids) > room
    if truncated:
        say(
            f"{truncated:,} of {len(texts):,} texts are cut off after {room + sequences.extra} "
            f"tokens (--max-length N, at most {longest})"
        )
    first = settings.pooling == "first"

    def pooled(state: State, inputs: Inputs) -> list[NDArray[np.float32]]:
        rows = (state.first() if first else state.mean()).float()
        return list((F.normalize(rows) if settings.normalize else rows).cpu().numpy())

    rows = run_batches(
        model, sequences.batch(), pooled, lambda batch: batch.starts if first else None,
        precision=precision,
    )  # fmt: skip
    return np.array(rows, np.float32).reshape(len(texts), model.config.hidden_size)


def _prompted(texts: Sequence[str], settings: SentenceEncoderSettings) -> list[str]:
    whole = [settings.prompt + text for text in texts]
    return [text.lower() for text in whole] if settings.lower_case else whole


def _texts(path: Path, column: str | None) -> list[str]:
    if is_table(path):
        given = ColumnMapping.build({"text": column} if column else None)
        examples, _ = Classification.read_table(path, given, labelled=False, say=quiet)
        return [example.first for example in examples]
    texts = [line.rstrip("\r") for line in read_lines(path)]
    if not any(text.strip() for text in texts):
        raise FormatError(f"{path}: holds no text")
    return texts
