"""The same text in three kinds of pieces; few contexts, which are quick to decompose."""

from __future__ import annotations

import pytest

from litebert.corpus.store import Store
from litebert.train.initialization import word_vectors as vectors_module
from tests.corpus.stores import make_store
from tests.train.initialization.learners import DOCUMENTS, WRITERS


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    """The same text in three kinds of pieces, some of it held out."""
    folder = tmp_path_factory.mktemp("stores")
    return {
        kind: make_store(folder / kind / "store", DOCUMENTS, write(folder / kind / "tokenizer"),
                         held_out=0.2)
        for kind, write in WRITERS.items()
    }  # fmt: skip


@pytest.fixture(autouse=True)
def _few_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decomposition of 1024 contexts takes a second; most tests ask about other things."""
    monkeypatch.setattr(vectors_module, "CONTEXTS", 64)
