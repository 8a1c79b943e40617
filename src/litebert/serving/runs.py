"""Training runs for the playground: which there are, and the lines of their metrics.jsonl.

Files are only read, and only those that are called metrics.jsonl, and warnings.txt beside them,
below the folder that the service was given; a run is asked for by a name from the list, never by a
path.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from litebert.serving.problems import Problem
from litebert.serving.schemas import RunLines, RunList, RunRow

METRICS, WARNINGS = "metrics.jsonl", "warnings.txt"
DEEPEST = 4  # folders below the one that is watched
MOST_RUNS = 200
MOST_BYTES = 4_000_000  # of one answer
MOST_WARNINGS, MOST_WARNING_BYTES = 20, 20_000


def list_runs(folder: Path | None) -> RunList:
    """The runs below a folder, the newest first."""
    if folder is None:
        return RunList(enabled=False, runs=[])
    now = time.time()
    found = sorted((now - path.stat().st_mtime, path) for path in _metrics_files(folder))
    rows = [
        RunRow(name=_name(folder, path), changed_seconds_ago=round(age, 1))
        for age, path in found[:MOST_RUNS]
    ]
    return RunList(enabled=True, runs=rows)


def read_run(folder: Path | None, name: str, offset: int) -> RunLines:
    """The lines of a run behind an offset; a file that was cut back is read anew."""
    paths = {} if folder is None else {_name(folder, path): path for path in _metrics_files(folder)}
    if name not in paths:
        raise Problem(404, f"no run {name[:80]!r}", "name")
    with paths[name].open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(offset if 0 <= offset <= size else 0)
        content = stream.read(MOST_BYTES)
        begin = stream.tell() - len(content)
    whole = content[: content.rfind(b"\n") + 1]
    lines = [line for line in map(_parsed, whole.splitlines()) if line is not None]
    warnings = _warnings(paths[name].with_name(WARNINGS))
    return RunLines(name=name, offset=begin + len(whole), lines=lines, warnings=warnings)


def _warnings(path: Path) -> list[str]:
    if not path.is_file():
        return []
    with path.open("rb") as stream:
        content = stream.read(MOST_WARNING_BYTES)
    return content.decode(errors="replace").splitlines()[:MOST_WARNINGS]


def _metrics_files(folder: Path) -> list[Path]:
    found = []
    for root, folders, files in os.walk(folder):
        below = Path(root)
        if len(below.relative_to(folder).parts) >= DEEPEST:
            folders.clear()
        if METRICS in files and (below / METRICS).is_file():
            found.append(below / METRICS)
    return found


def _name(folder: Path, path: Path) -> str:
    name = path.parent.relative_to(folder).as_posix()
    return folder.resolve().name if name == "." else name


def _parsed(line: bytes) -> dict[str, Any] | None:
    """A line that is not an object is left out: the run's own commands say what is wrong."""
    try:
        content = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
