"""Weights, layers and labels that no model can have."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import litebert
from litebert.base.errors import FormatError, LitebertError, SettingsError
from litebert.inference.model_folder import task_of
from litebert.model.model import Model
from litebert.tasks.task import TASK_KEY
from tests.hostile.small import TINY, edit


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_weights_that_are_not_finite_are_named(value: float, model_folder: Path) -> None:
    file = model_folder / "model.safetensors"
    tensors = load_file(file)
    name = sorted(tensors)[3]
    changed = tensors[name].double()
    changed.view(-1)[-1] = value
    save_file(tensors | {name: changed}, file)
    with pytest.raises(FormatError, match=f"{name!r} has values that are NaN or infinite"):
        litebert.load(model_folder)
    with pytest.raises(FormatError, match="NaN or infinite"):
        litebert.import_model(model_folder, model_folder.parent / "out")
    assert not (model_folder.parent / "out").exists()


def test_a_tensor_in_two_files_is_refused(model_folder: Path) -> None:
    name = "encoder.embeddings.token.weight"
    save_file({name: torch.zeros(12, 4)}, model_folder / "litebert.safetensors")
    with pytest.raises(FormatError, match=f"{name!r} is also in another file"):
        litebert.load(model_folder)


@pytest.mark.parametrize(
    ("layers", "inner", "sharing"), [(10_000, 1, "none"), (10_000, 10_000, "all"), (9, 900, "ffn")]
)
def test_too_many_layers_are_refused_at_once(layers: int, inner: int, sharing: str) -> None:
    shape = {"num_hidden_layers": layers, "inner_group_num": inner, "sharing": sharing}
    with pytest.raises(SettingsError, match="blocks"):
        litebert.EncoderConfig.build({**TINY, **shape}, "test")


@pytest.mark.parametrize(
    "labels", [{"0": "a", "2": "b"}, {"1": "a", "2": "b"}, {"00": "a", "1": "b"}, {"²": "a"}]
)
def test_labels_have_the_numbers_0_1_2(labels: dict[str, str], model_folder: Path) -> None:
    edit(model_folder / "config.json", id2label=labels)
    with pytest.raises(FormatError, match="id2label"):
        litebert.load(model_folder)


@pytest.mark.parametrize("labels", [(), ("a",), ("a", "b", "c"), ("a", "a")])
def test_a_task_has_the_labels_of_its_head(labels: tuple[str, ...], tmp_path: Path) -> None:
    config = litebert.EncoderConfig(**TINY)  # type: ignore[arg-type]
    model = Model.create(config, ("classification",), ("a", "b"))
    task = {"name": "classify", "kind": "classify", "metrics": ["accuracy"], "labels": labels}
    model.metadata[TASK_KEY] = task
    with pytest.raises(LitebertError, match="label"):
        task_of(model, tmp_path)
