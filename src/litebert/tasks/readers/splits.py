"""The files of a folder of the user's own: train.csv and valid.csv, ner-train.txt, dev.jsonl.gz."""

from __future__ import annotations

import re
from pathlib import Path

from litebert.base.errors import FileError
from litebert.reading.streams import compression
from litebert.reading.tables import quoted_list
from litebert.tasks.readers.formats import FORMATS

SPLIT_NAMES = {
    "train": ("train", "training"),
    "dev": ("dev", "valid", "validation", "val", "devel"),
    "test": ("test", "testing"),
}


def split_names(split: str) -> tuple[str, ...]:
    """What files call a split."""
    return SPLIT_NAMES.get(split, (split,))


def find_split(folder: Path, split: str) -> Path | None:
    """The one file of a split: named exactly so, or with its name as a word of theirs."""
    names = set(split_names(split))
    files = sorted(path for path in folder.iterdir() if path.is_file() and _is_read(path))
    exact = [path for path in files if _stem(path) in names]
    words = [path for path in files if names & set(re.split(r"[^a-z]+", _stem(path)))]
    found = exact or words
    if len(found) > 1:
        listed = quoted_list(path.name for path in found)
        raise FileError(f"{folder}: several files could be {split}: {listed}; name one file")
    return found[0] if found else None


def require_split(folder: Path, split: str) -> Path:
    """The same where it must be there."""
    found = find_split(folder, split)
    if found is None:
        there = quoted_list(sorted(path.name for path in folder.iterdir()))
        names = " or ".join(split_names(split))
        raise FileError(f"{folder}: no file named {names} (.csv, .tsv, …); there are {there}")
    return found


def _is_read(path: Path) -> bool:
    suffix = _plain(path).suffix.lower()
    return not path.name.startswith(".") and (suffix in FORMATS or not suffix)


def _stem(path: Path) -> str:
    return _plain(path).stem.lower()


def _plain(path: Path) -> Path:
    return path.with_suffix("") if compression(path.name) else path
