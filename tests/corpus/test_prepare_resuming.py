"""Preparation killed, stopped or called again: it goes on, and what differs is refused."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from litebert.base.errors import FileError, LitebertError
from litebert.corpus.preparing.prepare import PrepareProgress, prepare
from litebert.corpus.store import open_store
from tests.corpus.preparing import SMALL, content, documents

SCRIPT = """
import sys
from litebert.corpus.preparing.prepare import prepare
if __name__ == "__main__":
    settings = {"chunk_bytes": 4000, "held_out": 0.1}
    prepare([sys.argv[1]], sys.argv[2], sys.argv[3], **settings, num_workers=1)
"""


@pytest.mark.slow
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
