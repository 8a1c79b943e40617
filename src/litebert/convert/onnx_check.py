"""What an exported ONNX file must pass before the export ends.

- its products: of int8, every product with a weight is one of integers, and there are as many as
  the model has linear layers to run;
- its size: each weight once;
- its numbers: those of the torch model, where onnxruntime is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from litebert.base.errors import FormatError
from litebert.convert.onnx_encoder import IDS, MASK, TYPES
from litebert.convert.onnx_graph import import_onnx
from litebert.convert.onnx_heads import FEATURES, HEAD_GRAPHS, P_MASK
from litebert.model.layout import State
from litebert.model.model import Model

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

LARGEST_DIFFERENCE = 1e-4  # of fp32, for values around 1
LARGEST_SIZE = 1.02  # of fp32, against the parameters' bytes
SHAPES = ((1, 1), (7, 40))  # sequences and tokens that are compared
BATCHES = {None: (), "num_choices": (4,), 2: (2,)}
BILLIONS = 1e29  # logits of places that are not allowed

Feeds = dict[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Measured:
    """What was found of one file."""

    file: str
    bytes: int
    parameters: int
    products: int
    quantized: bool
    difference: float | None  # the largest, of fp32; of int8 relative to all; None: not compared

    def sentence(self) -> str:
        kind = "of integers" if self.quantized else "of floats"
        text = (
            f"{self.file}: {self.bytes / 1e6:.2f} MB for {self.parameters:,} parameters; "
            f"{self.products} products with weights, all {kind}; "
        )
        if self.difference is None:
            return text + "not compared with torch, as onnxruntime is not installed"
        if self.quantized:
            return text + f"differs from torch by {self.difference:.1%} of the values' norm"
        return text + f"largest difference from torch {self.difference:.1e}"


def check_file(model: Model, head: str, file: Path, name: str, *, quantized: bool) -> Measured:
    """Open a file anew, hold it to all of the above, and say what was found."""
    onnx = import_onnx()
    proto = onnx.load(file)
    parameters = sum(p.numel() for module in _modules(model, head) for p in module.parameters())
    products = _check_products(model, head, proto.graph, quantized)
    stored = sum(len(tensor.raw_data) for tensor in proto.graph.initializer)
    assert quantized or stored <= LARGEST_SIZE * 4 * parameters + 1024, f"{stored} bytes of weights"
    del proto
    difference = _difference(model, head, file, quantized)
    if difference is not None and not quantized and not difference <= LARGEST_DIFFERENCE:
        raise FormatError(
            f"{name}: differs from the model by {difference:.1e} (expected: at most "
            f"{LARGEST_DIFFERENCE:.0e}), so nothing was written; try another version of onnxruntime"
        )
    return Measured(name, file.stat().st_size, parameters, products, quantized, difference)


def open_session(file: Path, threads: int = 0) -> InferenceSession | None:
    """The file in onnxruntime, if that is installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # torch works too
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def reference(model: Model, head: str, feeds: Feeds) -> list[NDArray[np.floating]]:
    """What the torch model says, in the order of the graph's outputs; shapes are ours."""
    tensors = {name: torch.from_numpy(values).flatten(0, -2) for name, values in feeds.items()}
    mask = tensors[MASK].bool()
    with torch.no_grad():
        state = model(tensors[IDS], mask=mask, segments=tensors.get(TYPES))
        if head == FEATURES:
            found = [state.x_NH, *_sentence_embedding(model, state)]
        elif head == "span":
            found = model.head(head)(state).unbind(-1)
        elif P_MASK in tensors:
            found = model.head(head)(state, tensors[P_MASK] == 0)
        else:
            found = [model.head(head)(state)]
    return [tensor.numpy() for tensor in found]


def _sentence_embedding(model: Model, state: State) -> list[torch.Tensor]:
    settings = model.sentence_encoder
    if settings is None or settings.unknown:
        return []
    vectors = state.mean() if settings.pooling == "mean" else state.first()
    return [nn.functional.normalize(vectors) if settings.normalize else vectors]


def _modules(model: Model, head: str) -> list[nn.Module]:
    """What the graph is made of."""
    modules: list[nn.Module] = [model.encoder]
    if head != FEATURES:
        modules.append(model.head(head))
        if model.head(head).needs_pooler:
            assert model.pooler is not None
            modules.append(model.pooler)
    return modules


def _check_products(model: Model, head: str, graph: Any, quantized: bool) -> int:
    weights = {tensor.name for tensor in graph.initializer}
    found = {
        kind: sum(node.op_type == kind and node.input[1] in weights for node in graph.node)
        for kind in ("MatMul", "MatMulInteger")
    }
    blocks = model.config.num_hidden_layers * model.config.inner_group_num
    linear = [m for part in _modules(model, head)[1:] for m in part.modules()]
    expected = 4 * blocks + model.config.has_projection
    expected += sum(isinstance(module, nn.Linear) for module in linear) + HEAD_GRAPHS[head].tied
    assert found["MatMulInteger" if quantized else "MatMul"] == expected, (found, expected)
    assert found["MatMul" if quantized else "MatMulInteger"] == 0, found
    return expected


def _difference(model: Model, head: str, file: Path, quantized: bool) -> float | None:
    session = open_session(file, threads=torch.get_num_threads())
    if session is None:
        return None
    names = [value.name for value in session.get_inputs()]
    largest, error, norm = 0.0, 0.0, 0.0
    for sequences, length in SHAPES:
        feeds = example_feeds(model, head, names, sequences, length)
        for mine, other in compared(model, head, feeds, session.run(None, feeds)):
            largest = max(largest, float(np.abs(mine - other).max() / max(1, np.abs(other).max())))
            error += float(((mine - other) ** 2).sum())
            norm += float((other**2).sum())
    return (error / norm) ** 0.5 if quantized else largest


def compared(
    model: Model, head: str, feeds: Feeds, outputs: Any
) -> list[tuple[NDArray[np.floating], NDArray[np.floating]]]:
    """Pairs of arrays that should be alike: outputs and the reference, without padding."""
    real, pairs = feeds[MASK] == 1, []
    for mine, other in zip(outputs, reference(model, head, feeds), strict=True):
        other = other.reshape(mine.shape)
        if mine.shape[: real.ndim] == real.shape:
            mine, other = mine[real], other[real]
        allowed = np.abs(other) < BILLIONS
        pairs.append((mine[allowed], other[allowed]))
    return pairs


def example_feeds(model: Model, head: str, names: list[str], sequences: int, length: int) -> Feeds:
    """Random tokens, every second sequence padded."""
    config = model.config
    draw = np.random.default_rng(length)
    length = min(length, config.longest_sequence)
    shape = (sequences, *BATCHES[HEAD_GRAPHS[head].middle], length)
    ids = draw.integers(0, config.vocab_size, shape)
    ids[ids == config.pad_token_id] += 1 if config.pad_token_id == 0 else -1
    mask = np.ones(shape, np.int64)
    mask[1::2, ..., length - length // 3 :] = 0
    ids[mask == 0] = config.pad_token_id
    segments = draw.integers(0, config.type_vocab_size, shape) * mask
    forbidden = draw.integers(0, 2, shape)
    feeds = {IDS: ids, MASK: mask, TYPES: segments, P_MASK: forbidden}
    return {name: feeds[name] for name in names}
