"""Checkpoints: everything a killed run needs to resume as if nothing had happened.

    RUN/checkpoints/00001200/weights.safetensors     parameters, by name
                             optimizer.safetensors   its moments
                             state.json              step, tokens, loader position, sums, budget
                             manifest.json           sizes and SHA-256, written last

There are no random states: every draw of a run is a function of its seed and of what it is for.
A checkpoint is whole or not there (base/files.py); a damaged one is recognised, and the one before
it is used.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ConfigDict, Field
from torch import Tensor, nn
from torch.optim import Optimizer

from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.base.files import (
    MANIFEST,
    check_manifest,
    check_regular,
    new_folder,
    read_json,
    write_json,
)
from litebert.base.settings import Settings
from litebert.model.folder import read_tensors, write_tensors
from litebert.train.distributed import DistributedGroup
from litebert.train.optimizer import optimizer_tensors, restore_optimizer

WEIGHTS, OPTIMIZER, STATE = "weights.safetensors", "optimizer.safetensors", "state.json"
NAME = re.compile("[0-9]{8,18}")
Say = Callable[[str], None]


class SavedSums(Settings):
    """`Sums` as they are saved."""

    counts: list[float]
    values: list[float]


class SavedState(Settings):
    """What state.json must say; what else a kind of run remembers is its own business."""

    model_config = ConfigDict(extra="allow")

    step: int = Field(ge=0)
    tokens: int = Field(ge=0, lt=2**63)
    skipped: int = Field(ge=0, lt=2**31)
    seconds: float = Field(ge=0)
    metrics: int = Field(ge=0, lt=2**63, description="bytes of metrics.jsonl")
    batches: dict[str, Any]
    sums: SavedSums
    threads: int | None = Field(default=None, ge=1, le=4096)


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a run."""

    folder: Path
    keep: int

    def save(
        self, step: int, module: nn.Module, optimizer: Optimizer, state: dict[str, Any]
    ) -> None:
        """Write one, then remove those too many."""
        with new_folder(self.folder / f"{step:08d}", overwrite=True) as scratch:
            write_tensors(scratch / WEIGHTS, dict(module.named_parameters()))
            write_tensors(scratch / OPTIMIZER, optimizer_tensors(optimizer))
            write_json(scratch / STATE, state)
        found = self.found()
        later = [path for path in found if int(path.name) > step]  # damaged: the run went back
        earlier = found[: len(found) - len(later)]
        for path in [*later, *earlier[: -self.keep]]:
            shutil.rmtree(path, ignore_errors=True)

    def found(self) -> list[Path]:
        """All there are, oldest first."""
        if not os.path.isdir(self.folder):
            return []
        return sorted(path for path in self.folder.iterdir() if NAME.fullmatch(path.name))

    def last_good(self, say: Say) -> Path | None:
        """The newest undamaged one; damaged ones are told of."""
        found = self.found()
        for path in reversed(found):
            try:
                check_whole(path)
            except (FileError, OSError) as error:
                say(f"checkpoint {path.name} is damaged and left out ({error})")
                continue
            return path
        if found:
            raise FileError(
                f"{self.folder}: all {len(found)} checkpoints are damaged; remove the folder to "
                "start this run anew"
            )
        return None


def check_whole(path: Path) -> None:
    """Refuse a checkpoint that lost or changed a single bit, or whose state is none."""
    for name in (MANIFEST, WEIGHTS, OPTIMIZER, STATE):
        check_regular(path / name)
    check_manifest(path)
    read_state(path)


def read_state(path: Path) -> dict[str, Any]:
    """The state of a checkpoint, which is that of the step that its folder is named by."""
    where = path / STATE
    try:
        state = SavedState.build(read_json(where), str(where))
    except SettingsError as error:
        raise FormatError(f"{error}; damaged, or written by another version") from None
    if state.step != int(path.name):
        raise FormatError(f"{where}: step = {state.step}, the checkpoint is of step {path.name}")
    return state.model_dump(exclude_unset=True)


def restore(path: Path, module: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    """Put weights and moments back, and give the rest of the state."""
    restore_weights(path, module)
    device = next(module.parameters()).device
    moments = {name: tensor.to(device) for name, tensor in read_tensors(path / OPTIMIZER).items()}
    restore_optimizer(optimizer, moments, str(path / OPTIMIZER))
    return read_state(path)


def restore_everywhere(
    group: DistributedGroup, found: Path | None, module: nn.Module, optimizer: Optimizer
) -> dict[str, Any] | None:
    """The same on every rank, with a checkpoint that the main rank alone can read, or with none."""
    state = None
    if group.is_main and found is not None:
        state = restore(found, module, optimizer)
    state = group.broadcast_object(state)
    if state is not None and group.world_size > 1:
        moments = group.broadcast_tensors(optimizer_tensors(optimizer))
        if not group.is_main:
            restore_optimizer(optimizer, moments, "rank 0")
    group.broadcast_parameters(module)
    return state


@torch.no_grad()
def restore_weights(path: Path, module: nn.Module) -> None:
    """Put the weights back."""
    saved: dict[str, Tensor] = read_tensors(path / WEIGHTS)
    parameters = dict(module.named_parameters())
    for name in sorted(saved.keys() ^ parameters.keys()):
        raise FormatError(f"{path / WEIGHTS}: {name!r} does not belong to both file and model")
    for name, parameter in parameters.items():
        if saved[name].shape != parameter.shape:
            raise FormatError(f"{path / WEIGHTS}: {name!r} has another shape than the model's")
        parameter.copy_(saved[name])
