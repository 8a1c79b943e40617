"""A bucket in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from litebert.base.remote import urls


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(urls, "FIRST_WAIT", 0.0)
    store = fsspec.filesystem("memory")
    yield store
    store.store.clear()
    store.pseudo_dirs[:] = [""]
