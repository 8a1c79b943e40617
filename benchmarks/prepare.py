"""Preparing a corpus: `litebert prepare` against `datasets.map` with a fast tokenizer.

    python benchmarks/prepare.py [--input FILE] [--tokenizer FOLDER] [--rounds 2]

From raw text to a finished store on disk, two processes each, alternating. The peer reads the same
file with `datasets`, runs the fast ALBERT tokenizer of `transformers` over whole documents
(`batched=True, num_proc=2`) and saves to disk; it neither splits sentences nor keeps them, so it
has less to do. Memory is the sum over all processes of a run, sampled; then four copies of the
text, to see that it does not grow. Bars: 10 MB/s of text, 3x the peer, 1 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import texts


def ours(text: str, tokenizer: str, out: str) -> None:
    from litebert.corpus.preparing.prepare import prepare

    made = prepare([text], tokenizer, out, num_workers=2)
    total = made.store.total
    print(json.dumps({"bytes": total.text_bytes, "tokens": total.tokens, **made.progress.seconds}))


def peer(text: str, tokenizer: str, out: str) -> None:
    from datasets import load_dataset
    from transformers import AutoTokenizer

    kind = "csv" if ".csv" in text else "json"
    fast = AutoTokenizer.from_pretrained(tokenizer)
    data = load_dataset(kind, data_files=text, split="train", cache_dir=out + ".cache")

    def encode(batch: dict) -> dict:
        return {"input_ids": fast(batch["text"], add_special_tokens=False)["input_ids"]}

    done = data.map(encode, batched=True, num_proc=2, remove_columns=data.column_names)
    done.save_to_disk(out)
    print(json.dumps({"documents": len(done)}))


def run(side: str, text: str, tokenizer: str, scratch: Path) -> tuple[float, int, dict]:
    """Seconds, peak bytes over all processes, and what the side reported."""
    out = scratch / side
    command = [sys.executable, __file__, "--side", side, "--input", text, "--tokenizer", tokenizer]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
    )  # fmt: skip
    peak = [0]
    watcher = threading.Thread(target=_watch, args=(process, peak))
    watcher.start()
    said, _ = process.communicate()
    seconds = time.perf_counter() - began
    watcher.join()
    for left in (out, Path(f"{out}.cache")):
        shutil.rmtree(left, ignore_errors=True)
    if process.returncode:
        sys.exit(f"{side} failed; run it alone: {' '.join(command)} --out {out}")
    return seconds, peak[0], json.loads(said.splitlines()[-1])


def _watch(process: subprocess.Popen, peak: list[int]) -> None:
    while process.poll() is None:
        peak[0] = max(peak[0], sum(map(_resident, _family(process.pid))))
        time.sleep(0.05)


def _family(pid: int) -> list[int]:
    try:
        lists = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [pid] + [below for words in lists for child in words for below in _family(int(child))]


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    texts.add_options(parser)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        {"ours": ours, "peer": peer}[options.side](options.input, options.tokenizer, options.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(*texts.resolve(options, Path(folder)), Path(folder), options.rounds)


def compare(text: str, tokenizer: str, scratch: Path, rounds: int) -> None:
    best, peak = {"ours": float("inf"), "peer": float("inf")}, Counter()
    said: dict = {}
    for _ in range(rounds):
        for side in best:
            seconds, memory, report = run(side, text, tokenizer, scratch)
            best[side], peak[side] = min(best[side], seconds), max(peak[side], memory)
            said = report if side == "ours" else said
    size = said.pop("bytes") / 1e6
    tokens = said.pop("tokens")
    for side, seconds in best.items():
        print(f"{side}: {size / seconds:6.1f} MB/s of text, peak {peak[side] / 1e6:,.0f} MB")
    ratio = best["peer"] / best["ours"]
    print(f"{size:,.1f} MB of text, {tokens:,} tokens; ours is {ratio:.1f}x the peer (bar 3x)")
    spent = sum(said.values())
    shares = ", ".join(f"{stage} {part / spent:.0%}" for stage, part in said.items())
    print(f"where the workers' {spent:.1f} s went: {shares}")
    copies = scratch / "copies"
    copies.mkdir()
    for number in range(4):
        (copies / f"{number}-{Path(text).name}").symlink_to(Path(text).absolute())
    seconds, memory, _ = run("ours", str(copies), tokenizer, scratch)
    print(
        f"four times the text: {4 * size / seconds:.1f} MB/s, peak {memory / 1e6:,.0f} MB "
        f"({memory / peak['ours']:.2f}x; bar 1,000 MB and the same)"
    )


if __name__ == "__main__":
    main()
