"""`litebert layers`: how tokens move through an encoder's layers, several models in one picture.

ALBERT's Figure 1: the L2 distance and the cosine between each layer's input and output. Shared
layers move tokens more evenly than layers of their own, but do not converge to a fixed point.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.base.errors import FileError, SettingsError
from litebert.base.figures import COLOURS, new_axes, png
from litebert.base.files import check_writable, write_atomic
from litebert.corpus.loader import LoaderSettings
from litebert.corpus.store import Store
from litebert.model.folder import find_model_folder
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.movement import movements
from litebert.train.distributed import DistributedGroup
from litebert.train.held_out import held_out_batches

CPU = torch.device("cpu")
INPUT_FORMAT = "plain-pairs"


@dataclass(frozen=True)
class Movements:
    """Of each layer and token."""

    distance_LN: NDArray[np.float64]
    cosine_LN: NDArray[np.float64]


@dataclass(frozen=True)
class LayerCurve:
    """One model: means and standard deviations over tokens, by layer."""

    name: str
    distance: list[float]
    distance_deviation: list[float]
    cosine: list[float]
    cosine_deviation: list[float]
    tokens: int

    @property
    def roughness(self) -> float:
        """How much the distance changes from layer to layer, as a fraction of its mean."""
        return roughness(np.asarray(self.distance))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "roughness": self.roughness}


def layers(
    models: Sequence[str | Path],
    *,
    corpus: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    untrained: bool = True,
    sequences: int = 128,
    max_length: int = 128,
) -> list[LayerCurve]:
    """Follow tokens through the layers: L2 distance and cosine of each layer's input and output.

    The ALBERT paper's Figure 1, for any models; beside each, a copy with random weights shows what
    the architecture alone does.

    Example: litebert layers run-albert run-bert --corpus corpus --out layers.png

    Args:
        models: Runs or model folders, ours or Hugging Face's.
        corpus: A store made by `litebert prepare`, in the models' tokens; held-out text is read.
        out: A PNG file to draw the curves into.
        untrained: Draw a copy with random weights beside each.
        sequences: Held-out sequences to average over.
        max_length: Tokens of a sequence.
    """
    path = None if out is None else Path(out)
    if path is not None:
        if path.suffix.lower() != ".png":
            raise SettingsError(f"{path}: curves are drawn as PNG; name a file that ends in .png")
        check_writable(path)
    if not models:
        raise SettingsError("no model to follow; name at least one run or model folder")
    stores = [corpus] if isinstance(corpus, str | Path) else list(corpus)
    store = Store(stores)
    loading = LoaderSettings(input_format=INPUT_FORMAT, max_length=max_length)
    batches = list(held_out_batches(store, loading, None, sequences, DistributedGroup()))
    if not batches:
        raise FileError(f"{store.folders[0]}: no held-out text; prepare it with --held-out 0.02")
    curves = []
    for folder in models:
        model = Model.load(find_model_folder(Path(folder)))
        _check(model, store, Path(folder), max_length)
        inputs = [to_inputs(batch, CPU) for batch in batches]
        name = Path(os.path.abspath(folder)).name
        curves.append(curve(name, model, inputs))
        if untrained:
            copy = Model.create(model.config, tuple(model.heads), model.labels, seed=1).eval()
            curves.append(curve(f"{name}, untrained", copy, inputs))
    if path is not None:
        write_atomic(path, draw(curves))
    return curves


def _check(model: Model, store: Store, folder: Path, max_length: int) -> None:
    config = model.config
    if store.info.vocab_size > config.vocab_size:
        raise SettingsError(
            f"{store.folders[0]}: prepared with vocab_size {store.info.vocab_size}, {folder} has "
            f"{config.vocab_size}; prepare the text with the model's tokenizer"
        )
    if not 8 <= max_length <= config.longest_sequence:
        raise SettingsError(f"--max-length {max_length}: choose 8 to {config.longest_sequence}")


def curve(name: str, model: Model, inputs: Iterable[Inputs]) -> LayerCurve:
    """One model's curve over some inputs."""
    found = [layer_movements(model, one) for one in inputs]
    distance = np.concatenate([one.distance_LN for one in found], 1)
    cosine = np.concatenate([one.cosine_LN for one in found], 1)
    return LayerCurve(
        name, distance.mean(1).tolist(), distance.std(1).tolist(), cosine.mean(1).tolist(),
        cosine.std(1).tolist(), distance.shape[1],
    )  # fmt: skip


@torch.no_grad()
def layer_movements(model: Model, inputs: Inputs) -> Movements:
    """How each token of a batch moves through each layer."""
    model.eval()
    if model.config.type_vocab_size < 2:
        inputs = Inputs(**{**vars(inputs), "token_types": None})
    states: list[State] = [inputs.embed(model)]
    inputs.layers(model, states[0], 0, model.config.num_hidden_layers, collect=states)
    distance, cosine = movements([state.x_NH for state in states])
    return Movements(distance.double().numpy(), cosine.double().numpy())


def roughness(distance_L: NDArray[np.float64]) -> float:
    """The mean change of the distance between neighbouring layers, as a fraction of its mean.

    The first layer is left out: it takes tokens from the embeddings, and moves them far.
    """
    later = distance_L[1:]
    return float(np.abs(np.diff(later)).mean() / later.mean()) if len(later) > 1 else 0.0


def draw(curves: Sequence[LayerCurve]) -> bytes:
    """Distance and cosine side by side; untrained copies are dashed."""
    figure, (left, right) = new_axes(2, extra="plot", purpose="drawing layers")
    for place, one in enumerate(curves):
        style = "--" if one.name.endswith("untrained") else "-"
        depth = np.arange(1, len(one.distance) + 1)
        for axes, mean, spread in (
            (left, one.distance, one.distance_deviation),
            (right, one.cosine, one.cosine_deviation),
        ):
            colour = COLOURS[place % len(COLOURS)]
            low, high = np.subtract(mean, spread), np.add(mean, spread)
            axes.plot(depth, mean, style, color=colour, marker="o", markersize=3, label=one.name)
            axes.fill_between(depth, low, high, color=colour, alpha=0.12, linewidth=0)
    left.set_title("L2 distance of a layer's input and output")
    right.set_title("cosine of a layer's input and output")
    for axes in (left, right):
        axes.set_xlabel("layer")
    left.legend(frameon=False)
    return png(figure)
