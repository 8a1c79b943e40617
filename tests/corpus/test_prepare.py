"""Preparation: the same bytes whatever the workers, the parts, and how often it was killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebert.base.errors import FileError, LitebertError, SettingsError
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.preparing.prepare import PrepareProgress, prepare
from litebert.corpus.preparing.work_units import PrepareSettings, work_units
from litebert.corpus.shard import build_shard, open_shard, shard_bytes
from litebert.corpus.store import Store, open_store
from litebert.objectives.masking import Masker, Masking
from litebert.reading.sources import find_sources
from litebert.text.tokenizer import load_tokenizer

WORDS = ["river", "stone", "lamp", "green", "walks", "slowly", "under", "bridge", "old", "the"]
SMALL: dict[str, Any] = {"chunk_bytes": 4000, "held_out": 0.1}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WordPiece vocabulary that knows the words and all letters."""
    folder = tmp_path_factory.mktemp("tokenizer")
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *letters, *WORDS]
    pieces += [f"##{letter}" for letter in letters]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(pieces)) + "\n")
    return folder / "vocab.txt"


def documents(count: int, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    return [
        " ".join(
            " ".join(chance.choices(WORDS, k=chance.randint(1, 12))).capitalize() + "."
            for _ in range(chance.randint(1, 9))
        )
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "corpus.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents(300)))
    return file


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def reference(corpus: Path, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reference") / "store"
    prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1)
    return out


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


SCRIPT = """
import sys
from litebert.corpus.preparing.prepare import prepare
if __name__ == "__main__":
    settings = {"chunk_bytes": 4000, "held_out": 0.1}
    prepare([sys.argv[1]], sys.argv[2], sys.argv[3], **settings, num_workers=1)
"""


def test_killed_at_every_moment_it_goes_on(
    corpus: Path, tokenizer: Path, reference: Path, tmp_path: Path
) -> None:
    """SIGKILL after each record, so every shard boundary is met; then undisturbed to the end."""
    out, shards = tmp_path / "store", len(open_store(reference).paths)
    kill = SCRIPT.replace(
        "import sys", "import os, signal, sys\nfrom litebert.corpus.preparing import workers"
    )
    kill = kill.replace(
        'if __name__ == "__main__":',
        """old, left = workers.write_atomic, [int(sys.argv[4])]
def write_atomic(path, content):
    left[0] -= 1
    if left[0] == 0:
        path.with_name(f".{path.name}.half").write_bytes(content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    old(path, content)
workers.write_atomic = write_atomic
if __name__ == "__main__":""",
    )
    chance, killed = random.Random(3), 0
    times: dict[str, int] = {}
    while True:
        arguments = [str(corpus), str(tokenizer), str(out), str(chance.randint(1, shards // 2))]
        code = subprocess.run([sys.executable, "-c", kill, *arguments], check=False).returncode
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
        assert not out.exists()
        work = Path(f"{out}.partial")
        for name, changed in times.items():
            assert (work / "store" / "shards" / name).stat().st_mtime_ns == changed, "made again"
        for record in (work / "done").glob("*.json"):
            shard = work / "store" / "shards" / f"{record.stem}.safetensors"
            times[shard.name] = shard.stat().st_mtime_ns
    assert killed >= 3
    assert content(out) == content(reference)


def test_a_killed_parent_takes_its_workers_along(
    corpus: Path, tokenizer: Path, reference: Path, tmp_path: Path
) -> None:
    """Workers must not go on alone, and the store is finished by the next run."""
    script = SCRIPT.replace(
        "num_workers=1", "num_workers=2, on_progress=lambda progress: print(1, flush=True)"
    )
    out = tmp_path / "store"
    command = [sys.executable, "-c", script, str(corpus), str(tokenizer), str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # the first shard is done, so workers are up
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.read()  # ends when every worker has closed it
    process.stdout.close()
    made = prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1)
    assert made.progress.reused_shards >= 1
    assert content(out) == content(reference)


def test_a_finished_store_is_not_made_again(
    corpus: Path, tokenizer: Path, reference: Path, tmp_path: Path
) -> None:
    out = tmp_path / "store"
    shutil.copytree(reference, out)
    before = content(out)
    made = prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1)
    assert made.progress.counts.documents == 0
    assert content(out) == before
    with pytest.raises(FileError, match=r"held_out: 0\.1 there, 0\.2 wanted"):
        prepare([str(corpus)], tokenizer, out, chunk_bytes=4000, held_out=0.2)


def test_settings_cannot_change_midway(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    out = tmp_path / "store"

    def stop(progress: PrepareProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1, on_progress=stop)
    with pytest.raises(FileError, match=r"settings\.language: en there, de wanted"):
        prepare([str(corpus)], tokenizer, out, **SMALL, language="de", num_workers=1)
    assert (
        prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1).progress.reused_shards == 1
    )


def test_two_at_once_in_one_folder(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    out = tmp_path / "store"

    def again(progress: PrepareProgress) -> None:
        prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1)

    with pytest.raises(FileError, match="another `litebert prepare` is at work"):
        prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1, on_progress=again)


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


def test_a_full_disk_leaves_no_store(
    corpus: Path, tokenizer: Path, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > 8:  # some shards are done by then
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left on device"):
        prepare([str(corpus)], tokenizer, tmp_path / "store", **SMALL, num_workers=1)
    assert not (tmp_path / "store").exists()
    monkeypatch.setattr(os, "fsync", real)
    assert prepare(
        [str(corpus)], tokenizer, tmp_path / "store", **SMALL, num_workers=1
    ).progress.reused_shards
    assert content(tmp_path / "store") == content(reference)


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


def test_other_text_on_a_pipe_is_noticed(tokenizer: Path, tmp_path: Path) -> None:
    """A chunk that carries its text is recognised by its checksum when the work goes on."""
    import gzip

    file, out = tmp_path / "text.txt.gz", tmp_path / "store"
    file.write_bytes(gzip.compress("\n\n".join(documents(60)).encode(), mtime=0))

    def stop(progress: PrepareProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare([str(file)], tokenizer, out, **SMALL, num_workers=1, on_progress=stop)
    size, times = file.stat().st_size, file.stat()
    other = gzip.compress("\n\n".join(documents(60, 1)).encode(), mtime=0)
    file.write_bytes((other + bytes(size))[:size] if len(other) < size else other)
    with pytest.raises(FileError, match="was changed since"):
        prepare([str(file)], tokenizer, out, **SMALL, num_workers=1)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(FileError, match="other text"):
        prepare([str(file)], tokenizer, out, **SMALL, num_workers=1)


def test_a_shard_that_is_lost_is_missed(
    corpus: Path, tokenizer: Path, reference: Path, tmp_path: Path
) -> None:
    out = tmp_path / "store"
    shutil.copytree(reference, out)
    lost = sorted((out / "shards").iterdir())[3]
    lost.unlink()
    with pytest.raises(FileError, match=f"{lost.name}: missing or cut short; remove"):
        prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1)


def test_what_does_not_decide_shards_may_change_midway(
    corpus: Path, tokenizer: Path, tmp_path: Path
) -> None:
    """The advice `--on-error skip` can be followed without losing what is done."""
    bad, out = tmp_path / "bad.jsonl", tmp_path / "store"
    bad.write_bytes(corpus.read_bytes() + b"not json" + bytes([10]))
    with pytest.raises(LitebertError, match="--on-error skip"):
        prepare([str(bad)], tokenizer, out, **SMALL, num_workers=1)
    made = prepare(
        [str(bad)], tokenizer, out, chunk_bytes=4000, held_out=0.3, drop_duplicates=True,
        on_error="skip", num_workers=1,
    )  # fmt: skip
    assert made.progress.reused_shards > 10
    assert made.store.info.held_out == 0.3
    assert made.store.info.drop_duplicates


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


def test_a_finished_store_and_a_stream(tokenizer: Path, tmp_path: Path, monkeypatch) -> None:
    """What cannot be read twice cannot be compared either."""
    (tmp_path / "one").write_text("the old bridge.")
    for attempt in range(2):
        with (tmp_path / "one").open(encoding="utf-8") as piped:
            monkeypatch.setattr("sys.stdin", piped)
            if attempt:
                with pytest.raises(FileError, match="already exists"):
                    prepare(["-"], tokenizer, tmp_path / "store", num_workers=1)
            else:
                prepare(["-"], tokenizer, tmp_path / "store", num_workers=1)


def test_bad_places_and_numbers(corpus: Path, tokenizer: Path, tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(SettingsError, match="num_workers 0"):
        prepare([str(corpus)], tokenizer, tmp_path / "store", num_workers=0)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="name a folder"):
        prepare([str(corpus)], tokenizer, ".", num_workers=1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"part": [0, 0]}, "part 0 of 0"),
        ({"vocab_size": -1}, "vocab_size"),
        ({"vocab_size": 10**13}, "vocab_size"),
        ({"shards": {"../../../etc/passwd": {}}}, "not the name of a shard"),
        ({"shards": {"000000-000000.safetensors": {"blocks": -1}}}, "blocks"),
        ({"shards": {"000000-000000.safetensors": {"blocks": 10**6}}}, "no shard can have"),
        ({"shards": {"000000-000000.safetensors": {"blocks": 10**3}}}, "not the shard"),
    ],
    ids=str,
)
def test_a_hostile_store(
    change: dict[str, object], words: str, reference: Path, tmp_path: Path
) -> None:
    out = tmp_path / "store"
    shutil.copytree(reference, out)
    info = json.loads((out / "store.json").read_text()) | change
    (out / "store.json").write_text(json.dumps(info))
    with pytest.raises(LitebertError, match=words):
        next(Loader(open_store(out), LoaderSettings(max_length=32)))


@pytest.mark.parametrize(
    "manifest", [{}, {"format": 1, "files": 3}, {"format": 1, "files": {"a": {}}}]
)
def test_a_hostile_manifest(manifest: dict[str, object], reference: Path, tmp_path: Path) -> None:
    out = tmp_path / "store"
    shutil.copytree(reference, out)
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(LitebertError, match="manifest"):
        Loader(open_store(out), LoaderSettings(max_length=32)).state()


def test_ids_that_the_tokenizer_does_not_have(reference: Path, tmp_path: Path) -> None:
    out = tmp_path / "store"
    shutil.copytree(reference, out)
    path = sorted((out / "shards").iterdir())[0]
    shard = open_shard(path)
    ids = np.array(shard.ids)
    ids[5] = 60_000
    lengths = np.diff(shard.sentences), np.diff(shard.documents)
    bad = build_shard("bad", ids, lengths[0], lengths[1], np.array(shard.keys))
    path.write_bytes(shard_bytes(bad))
    with pytest.raises(FileError, match="ids that its tokenizer does not have"):
        for _ in Loader(open_store(out), LoaderSettings(max_length=32), epochs=1):
            pass


def test_a_masker_belongs_to_its_tokenizer(reference: Path, tmp_path: Path) -> None:
    store = open_store(reference)
    settings = LoaderSettings(max_length=32)
    masker = Masker(Masking(), store.tokenizer)
    state = Loader(store, settings, masker).state()
    with pytest.raises(SettingsError, match="masking"):
        Loader(store, settings, Masker(Masking(fraction=0.5), store.tokenizer)).restore(state)
    pieces = (reference / "tokenizer" / "vocab.txt").read_text() + "another\n"
    (tmp_path / "vocab.txt").write_text(pieces)
    other = load_tokenizer(tmp_path / "vocab.txt")
    with pytest.raises(SettingsError, match="another tokenizer"):
        Loader(store, settings, Masker(Masking(), other))
    with pytest.raises(SettingsError, match="rank 5 of 3"):
        Loader(store, settings, masker, rank=5, world_size=3)
    with pytest.raises(SettingsError, match="damaged"):
        Loader(store, settings, masker).restore([])  # type: ignore[arg-type]


def test_records_speak_only_of_whole_shards(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    out = tmp_path / "store"

    def stop(progress: PrepareProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1, on_progress=stop)
    shard = next((tmp_path / "store.partial" / "store" / "shards").iterdir())
    shard.write_bytes(shard.read_bytes()[:-1])
    assert (
        prepare([str(corpus)], tokenizer, out, **SMALL, num_workers=1).progress.reused_shards == 0
    )
    open_store(out).check()
