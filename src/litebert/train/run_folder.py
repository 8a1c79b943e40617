"""A run's folder.

RUN/run.json         settings, corpus, versions; at the end what it took
RUN/metrics.jsonl    a line every few steps, and one for every evaluation
RUN/checkpoints/     what a killed run continues from
RUN/model/           the result; ELECTRA's generator beside it in RUN/generator/
RUN/teacher.vectors  what a teacher said of texts, until the run is finished (vector_cache.py)
RUN/tensorboard/     event files, with log.tensorboard = true
RUN/lock             held by the one process that works here
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from litebert.base.errors import FileError, FormatError
from litebert.base.files import json_text, read_json, write_atomic
from litebert.base.settings import first_difference
from litebert.configs.schema import Preset

RUN, CHECKPOINTS, GENERATOR = "run.json", "checkpoints", "generator"
RUN_VERSION = 3
MAY_CHANGE = (
    "title",
    "checkpoint",
    "log",
    "distributed",
)  # settings that may change when a run is resumed


def describe(
    preset: Preset, corpus: str, start: str | None, teacher: str | None = None
) -> dict[str, Any]:
    """What a run is: equal descriptions, equal runs. A teacher is named by its checksum."""
    settings = preset.model_dump(mode="json")
    content = {"settings": settings, "corpus": corpus, "from": start, "taught_by": teacher}
    return {"format": RUN_VERSION, **content}


def make_folder(folder: Path) -> None:
    """A folder for a run: new, empty, or that of a run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = {entry.name: entry.stat().st_size for entry in folder.iterdir()}
    except OSError as error:
        raise FileError(f"{folder}: cannot be written ({error})") from None
    # A run that was killed before it was described has left empty files and a draft.
    drafts = {name for name in there if name.startswith(f".{RUN}")}
    begun = there.get("lock") == 0 and {n for n, size in there.items() if size} <= drafts
    if there and RUN not in there and not begun:
        raise FileError(f"{folder}: already exists and is no run; name another folder")


def is_finished(folder: Path) -> bool:
    """Whether a folder's run says that it is finished: then nothing is written there any more."""
    return os.path.lexists(folder / RUN) and read_json(folder / RUN).get("finished") is True


def open_run(folder: Path, description: dict[str, Any]) -> dict[str, Any]:
    """The run of a folder; a new one is not written yet, one of other settings is refused."""
    path = folder / RUN
    if not os.path.lexists(path):
        versions = {
            "litebert": version("litebert"), "torch": torch.__version__,
            "python": platform.python_version(),
        }  # fmt: skip
        return {**description, "versions": versions, "finished": False}
    run = read_json(path)
    if not isinstance(run.get("finished"), bool):
        raise FormatError(f"{path}: does not say whether the run is finished; it is damaged")
    difference = first_difference(_fixed(run), _fixed(description))
    if difference is not None:
        raise FileError(
            f"{folder}: a run of other settings ({difference}); use the same settings to resume "
            "it, or name another folder"
        )
    return run


def frozen_preset(folder: Path) -> Preset | None:
    """The preset that a folder's run began with; None where there is no run."""
    path = folder / RUN
    if not os.path.lexists(path):
        return None
    settings = read_json(path).get("settings")
    if not isinstance(settings, dict):
        raise FormatError(f"{path}: does not say the run's settings; it is damaged")
    return Preset.build(settings, str(path))


def _fixed(run: dict[str, Any]) -> dict[str, Any]:
    """The part of a description that must not change."""
    settings = run.get("settings")
    kept = (
        {k: v for k, v in settings.items() if k not in MAY_CHANGE}
        if isinstance(settings, dict)
        else {}
    )
    for table, name in (("data", "num_workers"), ("teacher", "folder")):
        if isinstance(kept.get(table), dict):
            kept[table] = {k: v for k, v in kept[table].items() if k != name}
    return {**{key: run.get(key) for key in ("format", "corpus", "from", "taught_by")}, **kept}


def save_run(folder: Path, run: dict[str, Any]) -> None:
    """Write run.json, whole."""
    write_atomic(folder / RUN, json_text(run).encode())
