"""Checkpoints are whole or not there, and a damaged one is never used: the one before it is."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.base import files
from litebert.base.errors import FileError
from litebert.configs.schema import Preset
from litebert.train import checkpoint
from litebert.train.checkpoint import Checkpoints, check_whole, restore
from litebert.train.optimizer import build_optimizer
from litebert.train.pretrain import pretrain
from tests.train.runs import (
    Blow,
    Notes,
    Told,
    assert_equal_endings,
    in_ranks,
    last_checkpoint,
    small,
    train,
)

NAMES = ("weights.safetensors", "optimizer.safetensors", "state.json", "manifest.json")
DAMAGES = 60  # of each file


@pytest.fixture(scope="module")
def preset() -> Preset:
    return small("albert-tiny")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, corpus: Path, preset: Preset) -> Path:
    """An undisturbed run."""
    out = tmp_path_factory.mktemp("whole") / "run"
    pretrain(preset, corpus, out)
    return out


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, corpus: Path, preset: Preset) -> Path:
    """A run that was killed, with the checkpoints of steps 6 and 9."""
    out = tmp_path_factory.mktemp("stopped") / "run"
    train(preset, corpus, out, blow=Blow(11, signal.SIGKILL))
    return out


@pytest.fixture
def killed(stopped: Path, tmp_path: Path) -> Path:
    """A copy of the killed run, to be damaged."""
    return Path(shutil.copytree(stopped, tmp_path / "killed"))


def flip_bit(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def cut_short(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def remove(path: Path, chance: random.Random) -> None:
    path.unlink()


def names(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def test_a_checkpoint_holds_what_the_page_says(whole: Path, preset: Preset) -> None:
    assert names(whole) == ["00000012", "00000014"]
    last = last_checkpoint(whole)
    assert sorted(path.name for path in last.iterdir()) == sorted(NAMES)
    assert set(json.loads((last / "manifest.json").read_text())["files"]) == set(NAMES[:3])
    state = json.loads((last / "state.json").read_text())
    assert state["step"] == 14
    assert {"tokens", "seconds", "batches", "sums", "world_size", "threads"} <= state.keys()


@pytest.mark.parametrize("keep", [1, 3])
def test_the_last_few_are_kept(keep: int, corpus: Path, tmp_path: Path) -> None:
    preset = small("albert-tiny", checkpoint={"every": 2, "keep": keep})
    pretrain(preset, corpus, tmp_path / "run")
    assert names(tmp_path / "run") == [f"{step:08d}" for step in (10, 12, 14)[-keep:]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", [flip_bit, cut_short])
def test_every_damage_is_noticed(
    name: str, damage: Callable[[Path, random.Random], None], killed: Path
) -> None:
    """Random bits and lengths of one file; each time the one before is named, and said so."""
    kept = Checkpoints(killed / "checkpoints", 2)
    path = killed / "checkpoints" / "00000009" / name
    content, chance = path.read_bytes(), random.Random(name)
    for _ in range(DAMAGES):
        damage(path, chance)
        said: list[str] = []
        assert kept.last_good(said.append) == killed / "checkpoints" / "00000006"
        assert len(said) == 1
        assert "00000009 is damaged" in said[0]
        path.write_bytes(content)
    assert kept.last_good(said.append) == killed / "checkpoints" / "00000009"


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (NAMES[0], flip_bit),
        (NAMES[1], cut_short),
        (NAMES[2], flip_bit),
        (NAMES[3], flip_bit),
        (NAMES[3], cut_short),
        (NAMES[2], remove),
        (NAMES[3], remove),
    ],
)
def test_training_goes_on_from_the_one_before(
    name: str, damage: Any, corpus: Path, killed: Path, whole: Path, preset: Preset
) -> None:
    damage(last_checkpoint(killed) / name, random.Random(name))
    notes = Notes()
    assert pretrain(preset, corpus, killed, callbacks=[notes]).finished
    assert notes.begun == [6]
    assert "00000009 is damaged" in notes.said[0]
    assert "resumes from step 6" in notes.said[1]
    assert_equal_endings(killed, whole)


def test_one_that_cannot_be_read_is_damaged(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk's own error is damage like any other."""
    sum_of = files.sha256

    def failing(path: Path) -> str:
        if path.parent.name == "00000009":
            raise OSError(5, "Input/output error")
        return sum_of(path)

    monkeypatch.setattr(files, "sha256", failing)
    said: list[str] = []
    found = Checkpoints(killed / "checkpoints", 2).last_good(said.append)
    assert found == killed / "checkpoints" / "00000006"
    assert "Input/output error" in said[0]


def test_nothing_good_left_is_said(corpus: Path, killed: Path, preset: Preset) -> None:
    for path in (killed / "checkpoints").iterdir():
        flip_bit(path / NAMES[0], random.Random(1))
    with pytest.raises(FileError, match="all 2 checkpoints are damaged"):
        pretrain(preset, corpus, killed)
    assert names(killed) == ["00000006", "00000009"]


@pytest.mark.parametrize("keep", [1, 2])
def test_damaged_ones_do_not_push_good_ones_out(
    keep: int, corpus: Path, killed: Path, whole: Path
) -> None:
    """A new checkpoint before a damaged later one must be there for the next call."""
    preset = small("albert-tiny", checkpoint={"keep": keep})
    flip_bit(last_checkpoint(killed) / NAMES[0], random.Random(2))
    (told,) = train(preset, corpus, killed, blow=Blow(7, signal.SIGTERM))
    assert told.result is not None
    assert told.result.step == 8
    (told,) = train(preset, corpus, killed)
    assert told.error is None
    assert told.begun == (8,)
    assert_equal_endings(killed, whole)


def test_what_a_killed_writer_left_is_removed(
    corpus: Path, killed: Path, whole: Path, preset: Preset
) -> None:
    left = killed / "checkpoints" / ".00000012.abcdefgh"
    shutil.copytree(killed / "checkpoints" / "00000009", left)
    (left / "manifest.json").unlink()
    pretrain(preset, corpus, killed)
    assert names(killed) == ["00000012", "00000014"]
    assert_equal_endings(killed, whole)


# Killed in the middle of writing.

MOMENTS = {
    "before the moments": (checkpoint, "optimizer_tensors", 3),
    "before the state": (checkpoint, "write_json", 3),
    "before the manifest": (files, "write_manifest", 3),
    "before flushing": (files, "flush", 3),
    "before renaming": (files, "_replace", 3),
    "while removing old ones": (shutil, "rmtree", 0),
}


def die_at(pids: list[int], moment: str, preset: Preset, corpus: Path, out: Path) -> Told:
    """A run that is killed at the n-th call of a function, or when the first one is removed."""
    place, name, left = MOMENTS[moment]
    original = getattr(place, name)

    def counting(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if not left or (name == "rmtree" and arguments[0].name == "00000003"):
            signal.raise_signal(signal.SIGKILL)
        return original(*arguments, **named)

    setattr(place, name, counting)
    return Told(pretrain(preset, corpus, out))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_while_a_checkpoint_is_written(
    moment: str, corpus: Path, whole: Path, preset: Preset, tmp_path: Path
) -> None:
    """The checkpoint under way is not there, or it is whole; all before it are."""
    out = tmp_path / "run"
    (told,) = in_ranks(die_at, 1, moment, preset, corpus, out)
    assert told.result is None
    there = [path for path in (out / "checkpoints").iterdir() if path.name.isdigit()]
    assert there
    for path in there:
        check_whole(path)
    notes = Notes()
    pretrain(preset, corpus, out, callbacks=[notes])
    assert notes.begun == [9 if moment == "while removing old ones" else 6]
    assert_equal_endings(out, whole)
    assert names(out) == ["00000012", "00000014"]


def die_between_renames(pids: list[int], preset: Preset, corpus: Path, out: Path) -> Told:
    """A run stopped just where it saved already, killed when an old folder has stepped aside."""
    rename = Path.rename

    def dying(self: Path, target: Path) -> Path:
        moved = rename(self, target)
        if Path(target).name.endswith(".old"):
            signal.raise_signal(signal.SIGKILL)
        return moved

    Path.rename = dying  # type: ignore[method-assign]
    notes = Notes(pids=pids, blow=Blow(8, signal.SIGTERM))
    return Told(pretrain(preset, corpus, out, callbacks=[notes]))


def test_a_kill_never_takes_the_only_checkpoint(
    corpus: Path, whole: Path, tmp_path: Path
) -> None:  # fmt: skip
    """With one kept, a step saved twice must not leave a moment without any."""
    preset, out = small("albert-tiny", checkpoint={"keep": 1}), tmp_path / "run"
    in_ranks(die_between_renames, 1, preset, corpus, out)
    notes = Notes()
    assert pretrain(preset, corpus, out, callbacks=[notes]).finished
    assert notes.begun == [9]
    assert_equal_endings(out, whole)


# One by itself.


def module_and_optimizer(preset: Preset) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
    return module, build_optimizer(module, preset.optimizer)


def state(step: int) -> dict[str, Any]:
    """As much as every checkpoint's state must say."""
    return {
        "step": step, "tokens": 0, "skipped": 0, "seconds": 0.0, "metrics": 0, "batches": {},
        "sums": {"counts": [], "values": []},
    }  # fmt: skip


def one_step(module: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for number, parameter in enumerate(module.parameters()):
        parameter.grad = torch.sin(torch.arange(parameter.numel()) + number).view_as(parameter)
    optimizer.param_groups[0]["lr"] = 0.1
    optimizer.step()


@pytest.mark.parametrize("kind", ["albert-tiny", "albert-base", "bert-base"])
def test_weights_and_moments_come_back(kind: str, tmp_path: Path) -> None:
    """LAMB, torch's AdamW and Google's."""
    preset = small(kind)
    module, optimizer = module_and_optimizer(preset)
    one_step(module, optimizer)
    Checkpoints(tmp_path, 2).save(1, module, optimizer, state(1))
    other, its_optimizer = module_and_optimizer(preset)
    assert restore(tmp_path / "00000001", other, its_optimizer) == state(1)
    one_step(module, optimizer)
    one_step(other, its_optimizer)
    for ours, theirs in zip(module.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_another_models_checkpoint_is_refused(tmp_path: Path, preset: Preset) -> None:
    module, optimizer = module_and_optimizer(preset)
    one_step(module, optimizer)
    Checkpoints(tmp_path, 2).save(1, module, optimizer, {})
    other = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.LayerNorm(5))
    with pytest.raises(FileError, match="shape"):
        restore(tmp_path / "00000001", other, build_optimizer(other, preset.optimizer))


def test_saving_the_same_step_again_replaces_it(tmp_path: Path, preset: Preset) -> None:
    module, optimizer = module_and_optimizer(preset)
    kept = Checkpoints(tmp_path, 1)
    for number in range(3):
        kept.save(5, module, optimizer, state(5) | {"tokens": number})
    assert kept.found() == [tmp_path / "00000005"]
    assert restore(tmp_path / "00000005", module, optimizer)["tokens"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["00000005"]
