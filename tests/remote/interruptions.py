"""Lives of commands between S3 and S3, killed and disturbed; what is seen after each of them."""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
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
from tests.remote.s3 import BUCKET, Proxy, environment, s3_client
from tests.train.runs import Told, ending, in_ranks, small


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
    start_anew(bucket, scratch)
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
            start_anew(bucket, scratch)
        elif told.error:
            assert "after 6 attempts" in told.error, told.error
            tally.errors += 1
        else:
            tally.kills += 1
        if tally.lives % 10 == 0:
            print(f"{work}: {tally}, {proxy.faults - first} faults", flush=True)
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


def start_anew(bucket: Bucket, scratch: Path) -> None:
    """Forget everything, there and here."""
    bucket.clear("out/")
    shutil.rmtree(scratch / "cache", ignore_errors=True)
