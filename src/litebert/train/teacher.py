"""The teacher at work: an encoder with packed weights that reads what the student learns from.

Where both have one tokenizer it reads the student's tokens, unmasked. Else it reads their text:
ids are decoded with the student's tokenizer and encoded with the teacher's, which costs about 120
microseconds a sentence (docs/log/distillation.md), little beside reading it. What the student's
normalization took away (capitals, accents) the teacher does not see either.

Shapes: B sequences, N tokens, H units.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from litebert.base.batches import Batch, take
from litebert.base.errors import SettingsError
from litebert.base.files import sha256
from litebert.base.runtime import without_autocast
from litebert.inference.jobs import run_job
from litebert.inference.kernels import resolve_engine_precision
from litebert.inference.model_folder import open_tokenizer
from litebert.inference.packed import pack_model
from litebert.inference.pretrained import embed_job, embed_settings, vectors_job
from litebert.model.counting import forward_flops
from litebert.model.folder import find_model_folder
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.objectives.distillation import TeacherSettings
from litebert.text.tokenizer import Tokenizer
from litebert.train.vector_cache import VectorCache, text_keys


class PackedTeacher:
    """A `Teacher` (objectives/distillation.py) for students of a tokenizer."""

    def __init__(
        self, settings: TeacherSettings, tokenizer: Tokenizer, device: torch.device,
        cache: Path | None, *, asks_tokens: bool, max_length: int, caches: bool = True,
    ) -> None:  # fmt: skip
        self.folder = find_model_folder(Path(settings.folder))
        self.tokenizer, self.student_tokenizer = open_tokenizer(self.folder), tokenizer
        self.same_tokens = same_tokens(self.tokenizer, tokenizer)
        model = Model.load(self.folder).to(device)
        self.config = model.config
        self._check_length(max_length)
        self.token_table = model.encoder.embeddings.token.weight.detach().clone()
        precision = resolve_engine_precision(settings.precision, device)
        self.model, self.device = pack_model(model, precision), device
        most = settings.cache_megabytes * 2**20 if caches else 0
        self.cache = VectorCache(cache, self.config.hidden_size, most)
        self.one_pass = asks_tokens and self.same_tokens  # vectors come out of the tokens asked for
        self._read: _Reading | None = None

    def _check_length(self, max_length: int) -> None:
        longest = self.config.longest_sequence
        if self.same_tokens and max_length > longest:
            raise SettingsError(
                f"data.max_length {max_length}: the teacher {self.folder} reads {longest} tokens; "
                f"--set data.max_length={longest}"
            )

    @property
    def checksum(self) -> str:
        """What decides its answers."""
        files = [*sorted(self.folder.glob("*.safetensors")), self.folder / "config.json"]
        return "-".join(sha256(file)[:16] for file in files)

    def flops_per_token(self, length: int) -> float:
        """Forward FLOPs a token."""
        return sum(forward_flops(self.config, (), length).values())

    # ------------------------------------------------------------------------------ of tokens

    def query_key_value(self, inputs: Inputs, layer: int) -> Tensor:
        """Queries, keys and values of a layer's last block, (N, 3H)."""
        with _computing(self.device):
            parts = self.model.encoder.parts(layer - 1)
            state = self._reading(inputs).before_last_block(layer, len(parts))
            return parts[-1][0].query_key_value(state.x_NH).float()

    def hidden_states(self, inputs: Inputs, layer: int) -> Tensor:
        """Tokens after a layer, (N, H)."""
        with _computing(self.device):
            return self._reading(inputs).after(layer).x_NH.float()

    def _reading(self, inputs: Inputs) -> _Reading:
        if self._read is None or self._read.batch is not inputs.batch:
            self._read = _Reading(self.model, inputs.batch, self.device)
        return self._read

    # ------------------------------------------------------------------------------- of texts

    @cached_property
    def settings(self) -> SentenceEncoderSettings:
        """How it makes a vector of a text; refused where a folder says what is not followed."""
        return embed_settings(self.model, self.folder)

    def vectors(self, inputs: Inputs) -> Tensor:
        """One vector a sequence, (B, H)."""
        if self.one_pass:
            with _computing(self.device):
                state = self._reading(inputs).after(self.config.num_hidden_layers)
                pooled = state.mean() if self.settings.pooling == "mean" else state.first()
                return pooled.float()
        return torch.from_numpy(self._cached(inputs.batch)).to(self.device)

    def _cached(self, batch: Batch) -> np.ndarray:
        """As 16-bit floats have them, whether they were kept or not."""
        keys = text_keys(batch)
        rows = np.zeros((len(batch), self.config.hidden_size), np.float16)
        missing = self.cache.missing(keys)
        if missing:
            rows[missing] = self._encode(take(batch, missing))
        known, kept = self.cache.get(keys)
        rows[known] = kept
        self.cache.add([keys[place] for place in missing], rows[missing])
        return rows.astype(np.float32)

    def _encode(self, batch: Batch) -> np.ndarray:
        depth = self.config.num_hidden_layers
        if self.same_tokens:
            job = vectors_job(unmasked(batch), depth, self.settings.pooling)
            with _computing(self.device):
                return np.stack(run_job(self.model, job))
        edges = np.cumsum(batch.lengths)[:-1]
        parts = np.split(batch.originals, edges)
        texts = [self.student_tokenizer.decode(ids.tolist()) for ids in parts]
        job = embed_job(self.model, self.tokenizer, texts, depth, self.settings)
        with _computing(self.device):
            return run_job(self.model, job)


class _Reading:
    """A batch on its way through the teacher, as far as was asked for."""

    def __init__(self, model: Model, batch: Batch, device: torch.device) -> None:
        self.model, self.batch = model, batch
        plain = unmasked(batch)
        inputs = to_inputs(plain, device)
        if model.config.type_vocab_size < 2:
            inputs = replace(inputs, token_types=None)
        self.blocks = [inputs.embed(model)]

    def after(self, layer: int) -> State:
        """The state after a layer."""
        inner = self.model.config.inner_group_num
        while len(self.blocks) <= layer * inner:
            depth = (len(self.blocks) - 1) // inner
            self.model.encoder.layers(self.blocks[-1], depth, depth + 1, collect=self.blocks)
        return self.blocks[layer * inner]

    def before_last_block(self, layer: int, inner: int) -> State:
        """The state that the last block of a layer reads."""
        if inner == 1:
            return self.blocks[0] if layer == 1 else self.after(layer - 1)
        self.after(layer)
        return self.blocks[layer * inner - 1]


def unmasked(batch: Batch) -> Batch:
    """A batch as it was before masking."""
    nothing = batch.positions[:0]
    return replace(
        batch, ids=batch.originals, positions=nothing, targets=nothing.astype(batch.targets.dtype)
    )


def same_tokens(one: Tokenizer, other: Tokenizer) -> bool:
    """Whether two tokenizers give the same ids."""
    return (one.kind, one.normalization, one.tokens) == (
        other.kind, other.normalization, other.tokens,
    )  # fmt: skip


@contextmanager
def _computing(device: torch.device) -> Iterator[None]:
    with torch.no_grad(), without_autocast(device):
        yield
