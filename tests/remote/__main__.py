"""Interrupt uploads and downloads 200 times: is anything cut short ever seen, is anything lost?

    python -m tests.remote [--kills 100] [--faults 100] [--seed 0]

A preparation from S3 to S3, and a pretraining from S3 to S3, against moto's server on loopback
through a proxy that resets connections in the middle of an answer, answers with status 500, or is
slow; and processes that are killed at random moments. After every life, what can be seen there is
compared: objects of a store with those of an undisturbed one, checkpoints with their manifests.
What finishes must be equal to what an undisturbed command made.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.base.errors import LitebertError
from litebert.base.files import check_manifest
from litebert.base.remote import urls
from litebert.corpus.preparing.prepare import prepare
from litebert.train.pretrain import pretrain
from tests.corpus.stores import write_wordpiece
from tests.remote.corpora import write_formats
from tests.remote.s3 import BUCKET, Proxy, environment, s3_client, s3_server
from tests.train.runs import Told, ending, in_ranks, small, write_store


def _live(pids: list[int], variables: dict[str, str], work: str, delay: float | None) -> Told:
    """One life of a command, which may be killed after a while."""
    os.environ.update(variables)
    logging.disable()  # the retries are many
    urls.FIRST_WAIT = 0.05
    if delay is not None:
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
    try:
        if work == "prepare":
            prepare(
                [f"s3://{BUCKET}/raw/*"], f"s3://{BUCKET}/tokenizer", f"s3://{BUCKET}/out",
                num_workers=1, chunk_bytes=2000,
            )  # fmt: skip
        else:
            pretrain(small("albert-tiny"), f"s3://{BUCKET}/corpus", f"s3://{BUCKET}/out")
    except LitebertError as error:
        return Told(error=str(error))
    os.environ["LITEBERT_DONE"] = "1"
    return Told(begun=(1,))


@dataclass
class Tally:
    """What was done to the lives of a command."""

    lives: int = 0
    kills: int = 0
    errors: int = 0  # lives that gave up, in one sentence
    finished: int = 0


class Bucket:
    """What can be seen at the server itself."""

    def __init__(self, port: int) -> None:
        self.client = s3_client(port)

    def objects(self, prefix: str) -> dict[str, bytes]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        return {
            key.removeprefix(prefix): self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            for key in keys
        }

    def put(self, folder: Path, prefix: str) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                key = prefix + path.relative_to(folder).as_posix()
                self.client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())

    def get(self, prefix: str, folder: Path) -> Path:
        for name, content in self.objects(prefix).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder

    def clear(self, prefix: str) -> None:
        for name in self.objects(prefix):
            self.client.delete_object(Bucket=BUCKET, Key=prefix + name)


def interrupt(work: str, bucket: Bucket, proxy: Proxy, scratch: Path, kills: int, faults: int,
              chance: random.Random) -> Tally:  # fmt: skip
    """Lives of a command until so many were killed and so many faults have struck."""
    variables = environment(proxy.port) | {"LITEBERT_CACHE": str(scratch / "cache")}
    proxy.rate = 0.0
    began = time.monotonic()
    told = in_ranks(_live, 1, variables, work, None)[0]
    assert told.begun, told.error
    longest = time.monotonic() - began
    whole = _seen(work, bucket, scratch)
    tally, first = Tally(), proxy.faults
    _start_anew(bucket, scratch)
    while tally.kills < kills or proxy.faults - first < faults:
        kill = tally.kills < kills and chance.random() < 0.7
        proxy.rate = 0.02 if proxy.faults - first < faults else 0.0
        delay = chance.uniform(0.05, longest) if kill else None
        told = in_ranks(_live, 1, variables, work, delay)[0]
        tally.lives += 1
        _check_seen(work, bucket, whole, scratch)
        if told.begun:
            assert _seen(work, bucket, scratch) == whole
            tally.finished += 1
            _start_anew(bucket, scratch)
        elif told.error:
            assert "after 6 attempts" in told.error, told.error
            tally.errors += 1
        else:
            tally.kills += 1
    proxy.rate = 0.0
    told = in_ranks(_live, 1, variables, work, None)[0]
    assert told.begun, told.error
    assert _seen(work, bucket, scratch) == whole
    return tally


def _seen(work: str, bucket: Bucket, scratch: Path) -> Any:
    """What a finished command left there, times aside."""
    if work == "prepare":
        return bucket.objects("out/")
    shutil.rmtree(scratch / "seen", ignore_errors=True)
    return ending(bucket.get("out/", scratch / "seen"))


def _check_seen(work: str, bucket: Bucket, whole: Any, scratch: Path) -> None:
    """Nothing cut short is visible, and a manifest speaks of what is there."""
    seen = bucket.objects("out/")
    if work == "prepare":
        for name, content in seen.items():
            assert name in (".incomplete", ".probe") or whole[name] == content, name
        assert "manifest.json" not in seen or whole.keys() <= seen.keys()
        return
    shutil.rmtree(scratch / "seen", ignore_errors=True)
    folder = bucket.get("out/", scratch / "seen")
    for manifest in folder.rglob("manifest.json"):
        check_manifest(manifest.parent)


def _start_anew(bucket: Bucket, scratch: Path) -> None:
    bucket.clear("out/")
    shutil.rmtree(scratch / "cache", ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="processes to kill")
    parser.add_argument("--faults", type=int, default=100, help="answers to spoil")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, s3_server() as port:
        scratch, bucket = Path(folder), Bucket(port)
        bucket.client.create_bucket(Bucket=BUCKET)
        write_formats(scratch / "raw")
        bucket.put(scratch / "raw", "raw/")
        bucket.put(write_wordpiece(scratch / "tokenizer"), "tokenizer/")
        bucket.put(write_store(scratch / "text"), "corpus/")
        with Proxy(port, chance) as proxy:
            for work in ("prepare", "pretrain"):
                _start_anew(bucket, scratch)
                before = dict(proxy.kinds)
                half = (options.kills // 2, options.faults // 2)
                tally = interrupt(work, bucket, proxy, scratch, *half, chance)
                kinds = {k: n - before.get(k, 0) for k, n in proxy.kinds.items()}
                print(
                    f"{work}: {tally.lives} lives, {tally.kills} killed, faults {kinds}, "
                    f"{tally.errors} gave up in one sentence, {tally.finished} finished: all equal",
                    flush=True,
                )
    print("nothing cut short was ever visible, nothing was lost")


if __name__ == "__main__":
    main()
