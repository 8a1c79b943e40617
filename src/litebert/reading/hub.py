"""Hugging Face datasets as JSONL: `hf:NAME[:SPLIT][@CONFIG]`, or a folder's path as the name.

The records are streamed, one JSON object a line with the wanted field alone, so that cutting and
reading need to know nothing about datasets, and a line number in a message is a record's number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, LitebertError, MissingExtraError, SettingsError
from litebert.reading.tables import check_columns

PREFIX = "hf:"


def parse_name(name: str) -> tuple[str, str, str | None]:
    """`hf:wiki/ko:train@2023` as path, split and configuration."""
    dataset, _, config = name.removeprefix(PREFIX).partition("@")
    path, _, split = dataset.partition(":")
    if not path:
        raise SettingsError(f"{name}: name a dataset, as in hf:NAME, hf:NAME:SPLIT@CONFIG")
    return path, split or "train", config or None


def json_lines(name: str, field: str) -> Iterator[bytes]:
    """Every record of a dataset as a JSON line."""
    try:
        records = _load(*parse_name(name))
        if records.column_names:
            check_columns(name, records.column_names, field)
            records = records.select_columns([field])
        for record in records:
            yield _json_line(record, field)
    except LitebertError:
        raise
    except Exception as error:  # the library raises many kinds, and passes on its servers'
        reason = " ".join(str(error).split())[:300]
        raise FileError(
            f"{name}: cannot be read as a dataset ({type(error).__name__}: {reason})"
        ) from None


def _load(path: str, split: str, config: str | None) -> Any:
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", "datasets", "reading Hugging Face datasets") from None
    saved = Path(path)
    if (saved / "dataset_dict.json").is_file():  # written by DatasetDict.save_to_disk
        return datasets.load_from_disk(path)[split]
    if (saved / "state.json").is_file():  # written by Dataset.save_to_disk
        return datasets.load_from_disk(path)
    return datasets.load_dataset(path, config, split=split, streaming=True)


def _json_line(record: dict[str, Any], field: str) -> bytes:
    kept = {field: record[field]} if field in record else record
    try:
        return json.dumps(kept, ensure_ascii=False, default=repr).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair; reading will refuse it with its line
        return json.dumps(kept, default=repr).encode() + b"\n"
