"""Peak memory of a training step, item by item, from what the layers keep for their backward pass.

The encoder keeps, for every token and block (see `model/efficient.py`):

    x (H), query, key, value (3H), context (H), the sum before each norm (2H), before the GELU (I)

plus the attention probabilities where a kernel needs them, and dropout's factors. The peak is
reached as the backward pass begins, or, where parameters outweigh tokens, as it ends.
"""

from __future__ import annotations

from functools import cache

import torch

from litebert.base.runtime import Precision, memory_now, resolve_precision
from litebert.configs.schema import Preset
from litebert.model.attention import prefers_products
from litebert.model.config import EncoderConfig
from litebert.model.efficient import SLICE
from litebert.model.heads import MASKED_FRACTION
from litebert.planning.count import parameters

FLOAT = 4
ADAM_STATES = 2
LIBRARIES = 60_000_000  # what torch's libraries take when they first compute
TEXT = 55_000_000  # windows of the store and the samples made of them
# What oneDNN keeps of what it compiled, with the holes that leaves: half a megabyte a shape (the
# number of shapes is limited, base/runtime.py). Measured on runs of tiny, mini and base.
KERNELS = 800_000_000
HOLES = 0.2  # fraction of the heap that lies between tensors, measured with glibc's malloc
FEWEST_TOKENS = 256  # of a thread's part of a micro-batch: products of fewer rows are slow
MOST_PARAMETERS = 40_000_000  # every part has gradients of its own in memory, and they are added


def step_parts(parameters: int, tokens: int, cores: int) -> int:
    """In how many parts, a core each, a micro-batch is computed (train/threads.py)."""
    if parameters > MOST_PARAMETERS:
        return 1
    return max(min(cores, tokens // FEWEST_TOKENS), 1)


def peak_memory(
    preset: Preset, batch_size: int, max_length: int, precision: Precision, checkpointing: bool
) -> dict[str, int]:
    """Bytes by item; `total` is the estimated peak of the process on this machine."""
    device = torch.device("cpu")
    counts = parameters(preset)
    count = sum(n for name, n in counts.items() if name not in ("total", "with_heads"))
    parts = 1
    if not checkpointing:
        parts = step_parts(count, batch_size * max_length, torch.get_num_threads())
    weights = count * FLOAT
    configs = [preset.model] + ([preset.generator] if preset.generator else [])
    low = 2 if resolve_precision(precision, device) == "bf16" else FLOAT
    dtype = torch.bfloat16 if low == 2 else torch.float32
    kept = sum(_kept(c, batch_size, max_length, dtype, checkpointing) for c in configs)
    working = max(_working(c, batch_size, max_length, dtype, checkpointing) for c in configs)
    table = max(c.vocab_size * c.embedding_size for c in configs) * FLOAT
    # A block's weight gradients are made before they are added to those of the other layers.
    block = max(_block_weights(c) for c in configs) * FLOAT
    at_start = kept + working + parts * (table + 2 * block)
    at_end = (
        (parts * weights if parts > 1 else 0) + block + working
    )  # everything's gradients; activations are gone
    items = {
        "weights": weights,
        "gradients": weights,
        "optimizer": ADAM_STATES * weights,
        "activations": kept,
        "working": max(at_start, at_end) - kept,
        "runtime": _baseline() + LIBRARIES,
        "kernels": KERNELS if low == 2 else 0,
        "text": TEXT,
        "allocator": int(HOLES * max(at_start, at_end)),
    }
    return {"total": sum(items.values()), **items}


@cache
def _baseline() -> int:
    """What the process holds before it trains: read once, as measuring leaves memory behind."""
    return memory_now()


def _kept(
    config: EncoderConfig, batch_size: int, max_length: int, dtype: torch.dtype, checkpointing: bool
) -> int:
    """What is held from forward to backward."""
    size, tokens = dtype.itemsize, batch_size * max_length
    blocks = config.num_hidden_layers * config.inner_group_num
    per_token = config.hidden_size * size if checkpointing else _block_token(config, dtype)
    attention = 0 if checkpointing else _probabilities(config, batch_size, max_length, dtype)
    embeddings = (3 if config.hidden_dropout_prob else 2) * config.embedding_size * FLOAT
    masked = MASKED_FRACTION * 3 * (config.hidden_size + config.embedding_size) * FLOAT
    return int(blocks * (tokens * per_token + attention) + tokens * (embeddings + masked))


def _block_weights(config: EncoderConfig) -> int:
    """Weights of the matrices of one block."""
    return config.hidden_size * (4 * config.hidden_size + 2 * config.intermediate_size)


def _block_token(config: EncoderConfig, dtype: torch.dtype) -> int:
    """Bytes a token and block; dropout keeps its factors (attention) or a mask (feed-forward)."""
    values = 7 * config.hidden_size + config.intermediate_size
    dropout = config.hidden_size * (dtype.itemsize + 1) if config.hidden_dropout_prob else 0
    return values * dtype.itemsize + dropout


def _probabilities(
    config: EncoderConfig, batch_size: int, max_length: int, dtype: torch.dtype
) -> int:
    dropout = config.attention_probs_dropout_prob
    if not prefers_products(torch.device("cpu"), dtype, max_length, dropout):
        return 0
    squares = batch_size * config.num_attention_heads * max_length * max_length
    scaled_query = batch_size * max_length * config.hidden_size
    return (squares * (3 if dropout else 1) + scaled_query) * dtype.itemsize


def _working(
    config: EncoderConfig, batch_size: int, max_length: int, dtype: torch.dtype, checkpointing: bool
) -> int:
    """Temporary buffers: of one block's backward pass, or of a slice of the vocabulary."""
    tokens, size = batch_size * max_length, dtype.itemsize
    block = tokens * (2 * config.intermediate_size + 6 * config.hidden_size) * size
    block += 2 * _probabilities(config, batch_size, max_length, dtype)
    if checkpointing:  # one block's activations come back
        block += tokens * _block_token(config, dtype)
    slices = min(SLICE, int(MASKED_FRACTION * tokens) + 1)
    return max(block, 2 * slices * config.vocab_size * FLOAT)
