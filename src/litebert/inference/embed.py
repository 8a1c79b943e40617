"""Texts as vectors: the mean of a text's tokens, or its [CLS]. Useful before anyone labels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.base.errors import FormatError, SettingsError
from litebert.base.files import check_writable, write_whole
from litebert.base.runtime import Precision, autocast, default_device, keep_freed_memory
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.tasks.features import NOTHING, Sequences, encode_all, take
from litebert.tasks.files.own import read_own
from litebert.tasks.files.roles import Columns
from litebert.tasks.files.text_file import read_lines
from litebert.tasks.predict import TOKENS, batches_by_length
from litebert.tasks.starting import open_tokenizer
from litebert.text.tokenizer import Tokenizer
from litebert.train.run import model_folder

SHORTEST = 3
TABLES = {".csv", ".tsv", ".jsonl", ".parquet"}


@torch.no_grad()
def embed(
    model: Model, tokenizer: Tokenizer, texts: Sequence[str], *, pooling: str = "mean",
    length: int = 128, precision: Precision = "auto",
) -> NDArray[np.float32]:  # fmt: skip
    """One row a text, (texts, H); longer texts are cut off."""
    if pooling not in ("mean", "first"):
        raise SettingsError(f"pooling {pooling!r}: choose mean or first")
    if length < SHORTEST:
        raise SettingsError(f"--length {length}: at least {SHORTEST}, for [CLS], a token and [SEP]")
    length = min(length, model.config.longest_sequence)
    sequences = Sequences(tokenizer)
    for owner, ids in enumerate(encode_all(tokenizer, texts)):
        sequences.add(owner, NOTHING, ids[: length - sequences.extra])
    batch = sequences.batch()
    device = next(model.parameters()).device
    vectors = np.zeros((len(texts), model.config.hidden_size), np.float32)
    model.eval()
    for chosen in batches_by_length(batch, TOKENS):
        with autocast(precision, device):
            inputs = to_inputs(take(batch, chosen), device)
            state = inputs.encode(model, read=inputs.batch.starts if pooling == "first" else None)
            rows = state.mean() if pooling == "mean" else state.first()
        vectors[chosen] = rows.float().cpu().numpy()
    return vectors


def embed_file(
    folder: Path, source: Path, out: Path, *, pooling: str = "mean", length: int = 128,
    column: str | None = None,
) -> tuple[int, int]:  # fmt: skip
    """Vectors of a file's texts as .npy; returns how many and how wide."""
    keep_freed_memory()
    check_writable(out)
    where = model_folder(folder)
    model = Model.load(where).to(default_device())
    texts = _texts(source, column)
    vectors = embed(model, open_tokenizer(where), texts, pooling=pooling, length=length)
    stream = io.BytesIO()
    np.save(stream, vectors, allow_pickle=False)
    write_whole(out, stream.getvalue())
    return vectors.shape


def _texts(source: Path, column: str | None) -> list[str]:
    if TABLES & set(source.suffixes):
        columns = Columns(text=column) if column else None
        found = read_own(source, "classify", columns, needs_labels=False).examples
        return [example.first for example in found]  # type: ignore[union-attr]
    texts = [line.rstrip("\r") for line in read_lines(source)]
    if not any(text.strip() for text in texts):
        raise FormatError(f"{source}: holds no text")
    return texts
