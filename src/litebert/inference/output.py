"""Predictions as a file, in the format that its name asks for.

.jsonl   an object a line          .csv, .tsv    a row each, `probabilities.LABEL` as columns
.json    a list of them            .conll, .bio  a word and its tag a line, for tags
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from litebert.base.errors import SettingsError
from litebert.tasks.readers.formats import format_of_name
from litebert.tasks.task import Prediction, Task

Predictions = Sequence[Prediction]


def to_json_lines(predictions: Iterable[Prediction]) -> str:
    """Predictions as JSON, a line each."""
    lines = (json.dumps(one.to_json(), ensure_ascii=False) for one in predictions)
    return "".join(f"{line}\n" for line in lines)


def check_format(path: Path, task: Task) -> None:
    """Refuse a name whose format is not written, or not for this task."""
    if path.suffix.lower() not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise SettingsError(f"{path}: predictions are written as {known}; give it such a name")
    if format_of_name(path) == "columns" and not task.has_word_columns:
        raise SettingsError(
            f"{path}: columns of words are for tags; for {task.kind} write .jsonl, .csv or .tsv"
        )


def predictions_text(path: Path, task: Task, predictions: Predictions) -> str:
    """What to write into a file of this name."""
    return _WRITERS[path.suffix.lower()](task, predictions)


def _json_lines(task: Task, predictions: Predictions) -> str:
    return to_json_lines(predictions)


def _json(task: Task, predictions: Predictions) -> str:
    found = [one.to_json() for one in predictions]
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _csv(task: Task, predictions: Predictions) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(_rows(predictions))
    return stream.getvalue()


def _tsv(task: Task, predictions: Predictions) -> str:
    """A tab or a line end within a field becomes a space, because TSV has no quotes."""
    rows = (["\t".join(" ".join(field.split()) for field in row)] for row in _rows(predictions))
    return "".join(f"{line}\n" for (line,) in rows)


def _word_columns(task: Task, predictions: Predictions) -> str:
    sentences = (task.to_word_columns(one) for one in predictions)
    return "".join("".join("\t".join(row) + "\n" for row in rows) + "\n" for rows in sentences)


def _rows(predictions: Predictions) -> list[list[str]]:
    flat = [_flat(one.to_json()) for one in predictions]
    names = list(dict.fromkeys(name for row in flat for name in row))
    return [names, *([row.get(name, "") for name in names] for row in flat)]


def _flat(record: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{key}": str(one) for key, one in value.items()}
        else:
            found[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return found


_WRITERS: dict[str, Callable[[Task, Predictions], str]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _tsv,
    ".conll": _word_columns,
    ".bio": _word_columns,
    ".iob": _word_columns,
    ".iob2": _word_columns,
}
