"""Two corpora for all tests here: numbered sentences, and a text of ten words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from litebert.corpus import shard as shards
from litebert.corpus.preparing.prepare import prepare
from litebert.corpus.sampling.window import window_count
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker, Masking
from tests.corpus import preparing
from tests.corpus.loaders import WINDOW
from tests.corpus.preparing import SMALL, WORDS
from tests.corpus.stores import make_documents, make_store, write_pieces


@pytest.fixture(scope="session")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pieces(tmp_path_factory.mktemp("pieces"))


@pytest.fixture(scope="session")
def documents() -> list[list[str]]:
    return make_documents(0, 150)


@pytest.fixture(scope="session")
def store(
    tmp_path_factory: pytest.TempPathFactory, pieces: Path, documents: list[list[str]]
) -> Iterable[Store]:
    """Several shards, many blocks, and with WINDOW several windows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "BLOCK_TOKENS", 800)
        folder = tmp_path_factory.mktemp("store")
        made = make_store(folder / "store", documents, pieces, chunk_bytes=20_000, held_out=0.2)
    assert len(made.paths) > 2
    assert window_count(made, WINDOW) > 3
    return made


@pytest.fixture(scope="session")
def masker(store: Store) -> Masker:
    return Masker(Masking(), store.tokenizer)


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WordPiece vocabulary that knows the words and all letters."""
    folder = tmp_path_factory.mktemp("tokenizer")
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *letters, *WORDS]
    pieces += [f"##{letter}" for letter in letters]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(pieces)) + "\n")
    return folder / "vocab.txt"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "corpus.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in preparing.documents(300)))
    return file


@pytest.fixture(scope="session")
def reference(corpus: Path, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reference") / "store"
    prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1)
    return out
