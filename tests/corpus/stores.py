"""Small corpora whose every sentence and token can be recognised, and limits for statistics.

Two sizes of thing: a `Window` built by hand, where token ids are places (so a sample says by itself
what it is made of), and a store prepared from generated text, where the first word of a sentence is
its number ("s17").
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import pre_tokenizers

from litebert.corpus.preparing.prepare import prepare
from litebert.corpus.sampling.window import Window
from litebert.corpus.store import Store
from litebert.text.backend import SpecialIds
from litebert.text.tokenizer import Tokenizer, load_tokenizer

FIRST_ID = 5  # of a window's text; below are pad, unk, cls, sep, mask
SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4)
SENTENCES = 6000  # that the vocabulary has names for
WORDS, TAILS = 200, 40  # ordinary words, and pieces that continue one
Documents = Sequence[Sequence[str]]


def stub_tokenizer(kind: str = "wordpiece") -> Any:
    """As much of a tokenizer as assembling needs."""
    return SimpleNamespace(special=SPECIAL, has_token_types=kind != "bpe")


def make_window(documents: Sequence[Sequence[int]], seed: int = 0) -> Window:
    """A window from the token counts of sentences; the n-th token has the id FIRST_ID + n."""
    lengths = [length for document in documents for length in document]
    sentences = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    counts = [len(document) for document in documents]
    keys = np.random.default_rng(seed).integers(0, 2**64, len(documents), dtype=np.uint64)
    return Window(
        ids=np.arange(sentences[-1], dtype=np.uint32) + np.uint32(FIRST_ID),
        sentences=sentences,
        documents=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        keys=keys,
    )


def random_lengths(
    seed: int,
    documents: int,
    sentences: tuple[int, int] = (1, 12),
    tokens: tuple[int, int] = (1, 25),
) -> list[list[int]]:
    """Token counts of the sentences of random documents; bounds are inclusive."""
    chance = np.random.default_rng(seed)
    counts = chance.integers(sentences[0], sentences[1] + 1, documents)
    lengths = chance.integers(tokens[0], tokens[1] + 1, counts.sum()).tolist()
    ends = np.cumsum(counts).tolist()
    return [lengths[start:end] for start, end in pairwise([0, *ends])]


def tail(number: int) -> str:
    """A piece of letters only, which continues a word."""
    return f"x{chr(97 + number // 20)}{chr(97 + number % 20)}"


def write_pieces(folder: Path) -> Path:
    """A SentencePiece model with a piece for each numbered sentence, ordinary word and tail."""
    folder.mkdir(parents=True, exist_ok=True)
    model = ModelProto()
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.trainer_spec.vocab_size = FIRST_ID + SENTENCES + WORDS + TAILS
    model.trainer_spec.pad_id, model.trainer_spec.unk_id = 0, 1
    model.trainer_spec.bos_id = model.trainer_spec.eos_id = -1
    model.normalizer_spec.name = "identity"
    control, unknown, normal = 3, 2, 1
    rows = [("<pad>", control), ("<unk>", unknown)]
    rows += [(piece, control) for piece in ("[CLS]", "[SEP]", "[MASK]")]
    rows += [(f"▁s{number}", normal) for number in range(SENTENCES)]
    rows += [(f"▁w{number}q", normal) for number in range(WORDS)]
    rows += [(tail(number), normal) for number in range(TAILS)]
    for piece, kind in rows:
        model.pieces.add(piece=piece, score=-1.0 if kind == normal else 0.0, type=kind)
    (folder / "spiece.model").write_bytes(model.SerializeToString())
    return folder


def write_wordpiece(folder: Path) -> Path:
    """BERT's kind: the same words, their tails with ##."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [f"s{number}" for number in range(SENTENCES)]
    pieces += [f"w{number}q" for number in range(WORDS)]
    pieces += [f"##{tail(number)}" for number in range(TAILS)]
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces))
    return folder


def write_bytes(folder: Path) -> Path:
    """Byte-level BPE without a single merge."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        *sorted(pre_tokenizers.ByteLevel.alphabet()),
        "<mask>",
    ]
    (folder / "vocab.json").write_text(json.dumps({piece: n for n, piece in enumerate(pieces)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return folder


def make_documents(
    seed: int, count: int, sentences: tuple[int, int] = (1, 12), words: tuple[int, int] = (0, 14)
) -> list[list[str]]:
    """Documents of sentences "s<number> w3qxab w12q …": numbers count on through the corpus."""
    chance = np.random.default_rng(seed)
    documents, number = [], 0
    for _ in range(count):
        document = []
        for _ in range(chance.integers(sentences[0], sentences[1] + 1)):
            parts = [f"s{number}"]
            for _ in range(chance.integers(words[0], words[1] + 1)):
                tails = "".join(tail(chance.integers(TAILS)) for _ in range(chance.integers(3)))
                parts.append(f"w{chance.integers(WORDS)}q{tails}")
            document.append(" ".join(parts))
            number += 1
        documents.append(document)
    assert number <= SENTENCES
    return documents


def write_text(path: Path, documents: Documents) -> Path:
    """One sentence a line, a blank line between documents, as Google's scripts have it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join("".join(line + "\n" for line in document) for document in documents))
    return path


def make_store(
    folder: Path, documents: Documents, tokenizer: Path, *, part: tuple[int, int] = (1, 1),
    chunk_bytes: int = 2**24, held_out: float = 0.0, drop_duplicates: bool = False,
) -> Store:  # fmt: skip
    """A store of documents. Parts of one corpus must be made with the same `folder.parent`."""
    text = folder.parent / "text" / "corpus.txt"
    if not text.exists():
        write_text(text, documents)
    return prepare(
        [str(text)], tokenizer, folder, format="sentences", held_out=held_out,
        drop_duplicates=drop_duplicates, chunk_bytes=chunk_bytes, part=f"{part[0]}/{part[1]}",
        num_workers=1,
    ).store  # fmt: skip


def sentence_numbers(tokenizer: Tokenizer) -> np.ndarray:
    """For each id the number of the sentence that it opens, or -1."""
    numbered = [piece.removeprefix("▁") for piece in tokenizer.tokens]
    numbered = [piece[1:] if piece[:1] == "s" else "" for piece in numbered]
    return np.array([int(number) if number.isdigit() else -1 for number in numbered])


def load(folder: Path) -> Tokenizer:
    """A tokenizer from its folder."""
    return load_tokenizer(folder)


def binomial_error(count: int, share: float) -> float:
    """Five standard errors of a share."""
    return 5 * math.sqrt(share * (1 - share) / count)


def chi_square(found: Any, expected: Any) -> float:
    """Pearson's statistic; cells that nothing is expected in must be empty."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert not found[expected == 0].any()
    there = expected > 0
    return float(((found[there] - expected[there]) ** 2 / expected[there]).sum())


def chi_square_limit(freedom: int) -> float:
    """What chi-square exceeds at five sigma (Wilson and Hilferty's approximation)."""
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + 5 * math.sqrt(spread)) ** 3


def assert_distributed(found: Any, expected: Any) -> None:
    """Counts agree with expected counts at five sigma."""
    freedom = max(int((np.asarray(expected) > 0).sum()) - 1, 1)
    assert chi_square(found, expected) < chi_square_limit(freedom)


def assert_same_distribution(one: Any, two: Any) -> None:
    """Two lists of counts over the same cells could come from one distribution, at five sigma."""
    table = np.array([one, two], dtype=float)
    table = table[:, table.sum(axis=0) >= 10]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    assert chi_square(table, expected) < chi_square_limit(max(table.shape[1] - 1, 1))
