"""Object stores: preparing from S3 against from disk, training from S3 against from disk.

    python benchmarks/remote.py [--input FILE] [--tokenizer FOLDER] [--megabytes 24] [--steps 150]

moto's server stands on loopback and shares the machine's cores, which makes S3 look worse than a
server elsewhere would. Bars: preparing at 70 % of the speed from disk; training from a remote store
without measurable loss once its shards are in the cache, and at most 3 % of the time for data.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import texts

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main() -> None:
    from tests.remote.s3 import BUCKET, environment, s3_client, s3_server

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    texts.add_options(parser)
    parser.add_argument("--megabytes", type=int, default=24)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, s3_server() as port:
        folder = Path(name)
        os.environ |= {**environment(port), "LITEBERT_CACHE": str(folder / "cache")}
        client = s3_client(port)
        client.create_bucket(Bucket=BUCKET)
        text, tokenizer = texts.resolve(options, folder)
        files = cut(Path(text), folder / "raw", options.megabytes)
        for file in files:
            client.upload_file(str(file), BUCKET, f"raw/{file.name}")
        prepare_both(folder, files, tokenizer, options.rounds)
        train_both(folder, options.steps)


def cut(text: Path, folder: Path, megabytes: int) -> list[Path]:
    """The first lines of a file, as a plain file and a compressed one."""
    folder.mkdir()
    suffix = Path(text.name.removesuffix(".gz")).suffix
    with gzip.open(text, "rb") if text.suffix == ".gz" else text.open("rb") as stream:
        head = stream.read(megabytes * 10**6)
    head = head[: head.rfind(b"\n") + 1]
    half = head.rfind(b"\n", 0, len(head) // 2) + 1
    (folder / f"a{suffix}").write_bytes(head[:half])
    (folder / f"b{suffix}.gz").write_bytes(gzip.compress(head[half:], 4))
    return sorted(folder.iterdir())


def prepare_both(folder: Path, files: list[Path], tokenizer: str, rounds: int) -> None:
    from tests.remote.corpora import assert_equal_folders
    from tests.remote.s3 import BUCKET

    from litebert.corpus.preparing.prepare import prepare
    from litebert.corpus.store import Store

    took: dict[str, list[float]] = {"disk": [], "s3": []}
    for _ in range(rounds):
        for where in took:
            out = folder / where
            shutil.rmtree(out, ignore_errors=True)
            remote = [f"s3://{BUCKET}/raw/{file.name}" for file in files]
            inputs = remote if where == "s3" else [str(file) for file in files]
            began = time.perf_counter()
            prepare(inputs, tokenizer, out)
            took[where].append(time.perf_counter() - began)
    assert_equal_folders(folder / "disk", folder / "s3")
    size = Store([folder / "disk"]).total.text_bytes / 1e6
    disk, s3 = (statistics.median(times) for times in took.values())
    print(
        f"preparing {size:.0f} MB, inputs on disk {size / disk:.1f} MB/s, from S3 "
        f"{size / s3:.1f} MB/s: {disk / s3:.0%} (bar 70 %); stores byte-identical",
        flush=True,
    )


def train_both(folder: Path, steps: int) -> None:
    from tests.remote.s3 import BUCKET

    from litebert.base.remote.folders import publish_folder
    from litebert.train.metrics import read_metrics
    from litebert.train.pretrain import pretrain

    publish_folder(folder / "disk", f"s3://{BUCKET}/corpus")
    lines = {}
    for name, corpus in (
        ("from S3, nothing cached", f"s3://{BUCKET}/corpus"),
        ("from S3, cached", f"s3://{BUCKET}/corpus"),
        ("from disk", folder / "disk"),
        ("from S3, cached, again", f"s3://{BUCKET}/corpus"),
        ("from disk, again", folder / "disk"),
    ):
        out = folder / f"run-{len(lines)}"
        pretrain("albert-tiny", corpus, out, budget=f"{steps}steps", overrides=["log.every=10"])
        found = [line for line in read_metrics(out) if line.kind == "training"][1:]
        speed = statistics.median(line.time.tokens_per_second for line in found)
        data = statistics.mean(line.time.data_fraction for line in found)
        lines[name] = speed
        print(f"training {name}: {speed:,.0f} tokens/s, data {data:.2%} of the time", flush=True)
    s3 = lines["from S3, cached"] + lines["from S3, cached, again"]
    disk = lines["from disk"] + lines["from disk, again"]
    print(f"from S3 (cached) against from disk: {s3 / disk:.3f}x")


if __name__ == "__main__":
    main()
