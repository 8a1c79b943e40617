"""Tables that unfold without end, and labels that look like numbers."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import litebert
from litebert.base.errors import FormatError
from litebert.tasks.metrics.squad import squad_v2
from litebert.tasks.registry import load_task
from tests.tasks.small import write_start


@pytest.mark.parametrize("label", ["--5", "9" * 5000, "-", "²"])
def test_labels_that_look_like_numbers(label: str, tmp_path: Path) -> None:
    kind = type(load_task({"name": "x", "kind": "classify", "metrics": ["accuracy"]}, "test"))
    path = tmp_path / "own.csv"
    path.write_text(f"text,label\na,1\nb,{label}\nc,-2\n")
    examples = kind.read_table(path, litebert_columns(), labelled=True, say=print)[0]
    assert set(kind.settings_for(examples, path).labels) == {"1", "-2", label}


def litebert_columns() -> Any:
    from litebert.tasks.readers.column_mapping import ColumnMapping

    return ColumnMapping.build(None)


BOMBS: dict[str, tuple[str, bytes]] = {
    "tiny rows": ("own.csv.gz", b"text,label\n" + b"a,b\n" * 3_000_000),
    "tiny objects": ("own.jsonl.gz", b"{}\n" * 3_000_000),
    "a long row": ("own.csv.gz", b"text,label\n" + b"a" * 20_000_000),
    "a questionnaire": ("own.json.gz", b'{"data": [' + b"{}," * 5_000_000 + b"{}]}"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_small_files_that_unfold_without_end(case: str, tmp_path: Path) -> None:
    name, content = BOMBS[case]
    (tmp_path / name).write_bytes(gzip.compress(content, 1))
    kind = "qa" if ".json." in name else "classify"
    with pytest.raises(FormatError, match="or too many lines for its size"):
        litebert.finetune(
            write_start(tmp_path / "start"), kind, tmp_path / "out", train=tmp_path / name
        )


def test_parquet_that_unfolds_without_end(tmp_path: Path) -> None:
    for rows, value in ((3_000_000, "a"), (1000, "a" * 1_000_000)):
        places = pyarrow.array(np.zeros(rows, np.int32))
        text = pyarrow.DictionaryArray.from_arrays(places, [value])
        table = pyarrow.table({"text": text, "label": text})
        pyarrow.parquet.write_table(table, tmp_path / "own.parquet", compression="zstd")
        assert (tmp_path / "own.parquet").stat().st_size < 100_000
        with pytest.raises(FormatError, match="more than"):
            litebert.finetune(
                write_start(tmp_path / "start"), "classify", tmp_path / "out",
                train=tmp_path / "own.parquet",
            )  # fmt: skip
        shutil.rmtree(tmp_path / "start")


def test_an_answer_of_nothing_counts_alike_in_search_and_score() -> None:
    """Where the official search takes a point off: documented in tasks/metrics/squad.py."""
    golds, odds = {"q": [], "r": ["x"]}, {"q": 0.1, "r": 0.2}
    found = squad_v2(golds, {"q": "the", "r": "x"}, odds)
    assert found["exact"] == found["best_exact"] == 100.0
