"""Preparation: the same bytes whatever the workers and parts; bad input in one sentence."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from litebert.base.errors import FileError, LitebertError, SettingsError
from litebert.corpus.preparing.prepare import PrepareProgress, prepare
from litebert.corpus.preparing.work_units import PrepareSettings, work_units
from litebert.corpus.store import Store, open_store
from litebert.reading.sources import find_sources
from litebert.text.tokenizer import load_tokenizer
from tests.corpus.preparing import SMALL, WORDS, content, documents


def test_a_store_holds_every_sentence_in_order(reference: Path, tokenizer: Path) -> None:
    store, words = open_store(reference), load_tokenizer(tokenizer)
    decoded = []
    for number in range(len(store.paths)):
        shard = store.shard(number)
        for low, high in pairwise(shard.documents):
            edges = shard.sentences[low : high + 1].tolist()
            texts = [words.decode(shard.ids[a:b].tolist()) for a, b in pairwise(edges)]
            decoded.append(texts)
    assert len(store.paths) > 10
    expected = [
        [f"{sentence.strip().lower()}." for sentence in text.split(".") if sentence.strip()]
        for text in documents(300)
    ]
    assert [[s.replace(" .", ".") for s in document] for document in decoded] == expected
    assert store.total.documents == 300
    assert store.total.sentences == sum(map(len, expected))
    assert store.total.text_bytes == sum(len(text.encode()) for text in documents(300))
    assert store.total.unknown_tokens == 0
    store.check()


def test_workers_change_nothing(
    corpus: Path, tokenizer: Path, reference: Path, tmp_path: Path
) -> None:
    seen: list[int] = []

    def watch(progress: PrepareProgress) -> None:
        seen.append(progress.counts.documents)

    made = prepare(
        [str(corpus)], tokenizer, tmp_path / "store", **SMALL, num_workers=2, on_progress=watch
    )
    assert content(tmp_path / "store") == content(reference)
    assert seen == sorted(seen)
    assert seen[-1] == 300
    assert set(made.progress.seconds) == {"read", "hash", "split", "encode", "write"}
    assert not (tmp_path / "store.partial").exists()


def test_compressed_input_gives_the_same_ids(
    corpus: Path, tokenizer: Path, reference: Path, tmp_path: Path
) -> None:
    import gzip

    packed = tmp_path / "corpus.jsonl.gz"
    packed.write_bytes(gzip.compress(corpus.read_bytes(), mtime=0))
    store = prepare([str(packed)], tokenizer, tmp_path / "store", **SMALL, num_workers=1).store
    plain = open_store(reference)
    ids = [np.concatenate([s.shard(n).ids for n in range(len(s.paths))]) for s in (store, plain)]
    assert np.array_equal(*ids)


def test_parts_joined_are_one_run(
    corpus: Path, tokenizer: Path, reference: Path, tmp_path: Path
) -> None:
    folders = [tmp_path / f"part{number}" for number in (1, 2, 3)]
    for number, folder in enumerate(folders, start=1):
        prepare([str(corpus)], tokenizer, folder, **SMALL, part=f"{number}/3", num_workers=1)
    joined, whole = open_store(*reversed(folders)), open_store(reference)
    assert [path.name for path in joined.paths] == [path.name for path in whole.paths]
    assert [p.read_bytes() for p in joined.paths] == [p.read_bytes() for p in whole.paths]
    with pytest.raises(SettingsError, match="list all parts"):
        Store(folders[:2]).require_all_parts()


def test_many_files_are_dealt_out_whole(tokenizer: Path, tmp_path: Path) -> None:
    """With files enough, a part does not even open what is not its own."""
    for number in range(6):
        text = "\n\n".join(documents(20, number))
        (tmp_path / f"{number}.txt").write_text(text)
    inputs = [str(tmp_path / f"{number}.txt") for number in range(6)]
    whole = prepare(inputs, tokenizer, tmp_path / "whole", **SMALL, num_workers=1).store
    for part in (1, 2):
        prepare(inputs, tokenizer, tmp_path / f"p{part}", **SMALL, part=f"{part}/2", num_workers=1)
    names = [{p.name[:6] for p in open_store(tmp_path / f"p{n}").paths} for n in (1, 2)]
    assert names == [{"000000", "000002", "000004"}, {"000001", "000003", "000005"}]
    joined = open_store(tmp_path / "p1", tmp_path / "p2")
    assert [p.read_bytes() for p in joined.paths] == [p.read_bytes() for p in whole.paths]


def test_duplicates_are_left_out_across_parts(tokenizer: Path, tmp_path: Path) -> None:
    texts = documents(40)
    repeated = [*texts, *texts[:15], *documents(5, 9), texts[0]]
    file = tmp_path / "repeated.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in repeated))
    settings = {**SMALL, "drop_duplicates": True}
    for part in (1, 2):
        prepare(
            [str(file)],
            tokenizer,
            tmp_path / f"{part}",
            **settings,
            part=f"{part}/2",
            num_workers=1,
        )
    store = open_store(tmp_path / "1", tmp_path / "2")
    kept = [store.in_split(n, slice(None), "all") for n in range(len(store.paths))]
    assert sum(int(mask.sum()) for mask in kept) == len(set(repeated))
    first = np.concatenate(kept)
    assert first[:40].all()
    assert not first[40:55].any()


@pytest.mark.parametrize("joint", [" ", ""])
def test_text_without_sentence_ends_is_cut_and_not_lost(
    joint: str, tokenizer: Path, tmp_path: Path
) -> None:
    text = joint.join(random.Random(0).choices(WORDS, k=3000))
    (tmp_path / "long.txt").write_text(text)
    store = prepare(
        [str(tmp_path / "long.txt")], tokenizer, tmp_path / "store", num_workers=1
    ).store
    shard, words = store.shard(0), load_tokenizer(tokenizer)
    if joint:  # cut at spaces: every word as it was
        assert words.decode(shard.ids.tolist()) == text
    assert np.diff(shard.sentences.astype(int)).max() <= 2000
    assert len(shard.sentences) - 1 >= len(text) // 2000


def test_nothing_to_prepare(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "blank.txt").write_text("\n  \n\n")
    with pytest.raises(FileError, match="no text at all"):
        prepare([str(tmp_path / "*.txt")], tokenizer, tmp_path / "store", num_workers=1)
    assert not (tmp_path / "store").exists()


def test_a_bad_record_in_a_worker_is_one_sentence(
    corpus: Path, tokenizer: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(corpus.read_bytes() + b'{"text": "caf\xe9"}\n')
    with pytest.raises(LitebertError, match=r"bad\.jsonl, line 301.*UTF-8"):
        prepare([str(bad)], tokenizer, tmp_path / "store", **SMALL, num_workers=2)
    assert not (tmp_path / "store").exists()
    made = prepare(
        [str(bad)], tokenizer, tmp_path / "other", **SMALL, on_error="skip", num_workers=1
    )
    assert made.store.total.documents == 300
    assert sum(made.store.total.skipped.values()) == 1
    assert "line 301" in "".join(made.progress.skipped.messages.values())


def test_small_archives_do_not_add_up_in_memory(tokenizer: Path, tmp_path: Path) -> None:
    """Neighbours share a shard by what they hold, not by what they weigh on disk."""
    import gzip

    text = ("the river walks slowly under the bridge.\n\n" * 500).encode()
    for number in range(6):
        (tmp_path / f"{number}.txt.gz").write_bytes(gzip.compress(text, mtime=0))
    sources = find_sources([str(tmp_path / "*.gz")])
    assert sum(source.size or 0 for source in sources) < 4000
    cut = list(work_units(sources, PrepareSettings(chunk_bytes=4000), (1, 1)))
    assert len({unit.shard for unit in cut}) == len(cut) > 10
    assert max(sum(len(chunk.text or b"") for chunk in p.chunks) for p in cut) < 3 * 4000
    assert b"".join(chunk.text or b"" for p in cut for chunk in p.chunks) == text * 6


def test_bad_places_and_numbers(corpus: Path, tokenizer: Path, tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(SettingsError, match="num_workers 0"):
        prepare([str(corpus)], tokenizer, tmp_path / "store", num_workers=0)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="name a folder"):
        prepare([str(corpus)], tokenizer, ".", num_workers=1)
