"""Predictions for GLUE's test sets, as gluebenchmark.com wants them: a zip of .tsv files."""

from __future__ import annotations

import io
import math
import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from litebert.base.errors import FormatError, SettingsError, did_you_mean
from litebert.base.files import write_atomic
from litebert.tasks.published.glue_tasks import GLUE, HIGHEST_SCORE, GlueTask, glue_task

SUBMISSION_FILES = tuple(name for task in GLUE.values() for name in task.submissions.values())
LARGEST = 100_000_000  # bytes of one file; QQP's has six million
_NO_DATE = (1980, 1, 1, 0, 0, 0)  # the same predictions give the same bytes


def submission_file(name: str, split: str = "test") -> str:
    """The file of a task's predictions for a test split: MNLI-mm.tsv for its mismatched one."""
    task = glue_task(name)
    if split not in task.submissions:
        raise SettingsError(
            f"{task.name}: the split {split!r} is not sent in; "
            f"{did_you_mean(split, task.submissions)}"
        )
    return task.submissions[split]


def submission_text(name: str, predictions: Iterable[tuple[str, str | float]]) -> str:
    """The content of a task's file, from (id, prediction) in the order of the test file."""
    task = glue_task(name)
    seen: set[str] = set()
    lines = ["index\tprediction"]
    for id, prediction in predictions:
        if id in seen:
            raise SettingsError(f"{task.name}: two predictions for the example {id!r}")
        seen.add(id)
        lines.append(f"{id}\t{_shown(task, prediction)}")
    return "\n".join(lines) + "\n"


def write_submission(path: Path | str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Write the zip of submission files, name -> text, and return the names GLUE still wants.

    A submission that is there already is added to, so that each task's model can do its part.
    """
    for name in texts:
        if name not in SUBMISSION_FILES:
            raise SettingsError(
                f"{name}: not a file of a submission; {did_you_mean(name, SUBMISSION_FILES)}"
            )
    texts = {**_already(Path(path)), **texts}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in sorted(texts.items()):
            entry = zipfile.ZipInfo(name, _NO_DATE)
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
    write_atomic(Path(path), content.getvalue())
    return tuple(name for name in SUBMISSION_FILES if name not in texts)


def _already(path: Path) -> dict[str, str]:
    """The files of a submission written before; no other file is overwritten."""
    if not os.path.exists(path):
        return {}
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            strange = any(entry.filename not in SUBMISSION_FILES for entry in entries)
            if strange or any(entry.file_size > LARGEST for entry in entries):
                raise zipfile.BadZipFile
            return {entry.filename: archive.read(entry).decode() for entry in entries}
    except (zipfile.BadZipFile, zlib.error, UnicodeDecodeError, OSError) as error:
        raise FormatError(f"{path}: exists and is no submission; name another file") from error


def _shown(task: GlueTask, prediction: str | float) -> str:
    if task.labels:
        if prediction not in task.labels:
            raise SettingsError(
                f"{task.name}: the prediction {prediction!r} is not one of {', '.join(task.labels)}"
            )
        return str(prediction)
    if isinstance(prediction, str) or not math.isfinite(prediction):
        raise SettingsError(f"{task.name}: the prediction {prediction!r} is not a number")
    return f"{max(0.0, min(HIGHEST_SCORE, prediction)):.3f}"
