"""Kill `litebert prepare` at random moments, start it again: is the store the same, byte for byte?

    python benchmarks/kill_prepare.py [--kills 50] [--input FILE] [--tokenizer FOLDER]

An undisturbed run first; then runs that are killed with SIGKILL after a random time, until so many
kills have happened, each going on in the same folder; when a run finishes, another folder is begun.
Every finished store is compared with the first, file by file. A shard that an earlier run finished
must never be made again: its file's inode and time of change are watched.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import texts


def start(text: str, tokenizer: str, out: Path) -> subprocess.Popen:
    code = (
        "import sys; from litebert.corpus.preparing.prepare import prepare\n"
        "if __name__ == '__main__': prepare([sys.argv[1]], sys.argv[2], sys.argv[3], "
        "chunk_bytes=2**21, num_workers=2)"
    )
    return subprocess.Popen([sys.executable, "-c", code, text, tokenizer, str(out)])


def shards(out: Path) -> dict[str, tuple[int, int]]:
    """Every recorded shard of an unfinished store: inode and time of change."""
    work = Path(f"{out}.partial")
    found = {}
    for record in (work / "done").glob("[!.]*.json"):
        shard = work / "store" / "shards" / f"{record.stem}.safetensors"
        if shard.exists():
            found[shard.name] = (shard.stat().st_ino, shard.stat().st_mtime_ns)
    return found


def same(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files with the same bytes."""
    names = [sorted(p.relative_to(f).as_posix() for p in f.rglob("*")) for f in (one, other)]
    files = [name for name in names[0] if (one / name).is_file()]
    return names[0] == names[1] and not any(filecmp.cmpfiles(one, other, files, False)[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    texts.add_options(parser)
    parser.add_argument("--kills", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        disturb(*texts.resolve(options, Path(folder)), Path(folder), options.kills)


def disturb(text: str, tokenizer: str, scratch: Path, kills: int) -> None:
    chance = random.Random(0)
    whole, out = scratch / "whole", scratch / "killed"
    began = time.perf_counter()
    assert start(text, tokenizer, whole).wait() == 0
    length = time.perf_counter() - began
    done = stores = redone = 0
    while done < kills:
        before = shards(out)
        process = start(text, tokenizer, out)
        try:
            code = process.wait(chance.uniform(0, length))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            done += 1
            after = shards(out)
            redone += sum(after.get(name) != state for name, state in before.items() if after)
            continue
        assert code == 0
        stores += 1
        assert same(whole, out), "the store differs from an undisturbed one"
        shutil.rmtree(out)
    process = start(text, tokenizer, out)
    assert process.wait() == 0
    assert same(whole, out), "the store differs from an undisturbed one"
    print(
        f"{done} kills over {stores + 1} stores of {len(list((whole / 'shards').iterdir()))} "
        f"shards: all byte-identical; finished shards made again: {redone}"
    )


if __name__ == "__main__":
    main()
