"""Tokenizers' folders as doors: SentencePiece, WordPiece and byte-level BPE."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.text.training import train_from_sentences
from tests.text.conftest import many_sentences

SIZES = {"sentencepiece": 260, "wordpiece": 500, "bpe": 400}
TEXT = "A café: the cat sat, 2,000 times."


@cache
def trained(kind: str) -> Tokenizer:
    return train_from_sentences(many_sentences(), kind, SIZES[kind], character_coverage=1.0)


def build_tokenizer(kind: str, *kept: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        trained(kind).save(folder / "tokenizer")
        for path in (folder / "tokenizer").iterdir():
            if kept and path.name not in kept:
                path.unlink()

    return build


def use_tokenizer(folder: Path, out: Path) -> None:
    tokenizer = load_tokenizer(folder / "tokenizer")
    ids = tokenizer.encode_with_offsets(TEXT).ids
    assert all(0 <= i < tokenizer.vocab_size for i in ids)
    tokenizer.decode(ids)


def show_command(folder: Path, out: Path) -> list[str]:
    return ["tokenizer", "show", str(folder / "tokenizer"), TEXT]
