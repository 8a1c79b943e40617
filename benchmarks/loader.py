"""The loader on one core: tokens a second, padding, and the time to restore a position.

    python benchmarks/loader.py [--input FILE] [--tokenizer FOLDER] [--store FOLDER]

ALBERT's segment pairs with n-gram masking, against the usual way: fixed blocks of the same ids
through `transformers`' DataCollatorForLanguageModeling in a torch DataLoader, which masks single
tokens and makes no pairs. Both in this process, pinned to one core. Bars: 500,000 tokens/s at
length 512, 300,000 at 128, padding at most 2 % at 512.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import texts

SECONDS = 5.0
BARS = {512: 500_000, 128: 300_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    texts.add_options(parser)
    parser.add_argument("--store", help="a prepared store, instead of preparing one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = options.store
        if store is None:
            from litebert.corpus.preparing.prepare import prepare

            text, tokenizer = texts.resolve(options, Path(folder))
            store = f"{folder}/store"
            prepare([text], tokenizer, store)
        os.sched_setaffinity(0, {0})
        measure(store)


def measure(folder: str) -> None:
    import torch

    from litebert.base.batches import pad
    from litebert.corpus.loader import Loader, LoaderSettings
    from litebert.corpus.store import open_store
    from litebert.objectives.masking import Masker, Masking

    torch.set_num_threads(1)
    store = open_store(folder)
    pad_id = store.tokenizer.special.pad
    for length, batch in ((512, 32), (128, 128)):
        settings = LoaderSettings(max_length=length, batch_size=batch, batch_by="tokens")
        loader = Loader(store, settings, Masker(Masking(), store.tokenizer))
        next(loader)
        packed = rate(lambda loader=loader: len(next(loader).ids))
        spread = rate(lambda loader=loader: int(pad(next(loader), pad_id).attention_mask.sum()))
        restored = restore_seconds(loader)
        blocks = peer(store, length, batch)
        other = rate(lambda blocks=blocks: int(next(blocks)["attention_mask"].sum()))
        print(
            f"length {length}: packed {packed:,.0f} tokens/s, padded {spread:,.0f} "
            f"(bar {BARS[length]:,}); {min(packed, spread) / other:.1f}x transformers' collator "
            f"({other:,.0f}); padding {loader.statistics.padding_fraction:.2%}; "
            f"restore {restored * 1e3:.0f} ms", flush=True,
        )  # fmt: skip


def rate(step: Callable[[], int]) -> float:
    """Tokens a second."""
    tokens, began = 0, time.perf_counter()
    while (seconds := time.perf_counter() - began) < SECONDS:
        tokens += step()
    return tokens / seconds


def restore_seconds(loader: Any) -> float:
    """From a saved position to the first batch, in a new loader."""
    from litebert.corpus.loader import Loader

    state = loader.state()
    began = time.perf_counter()
    next(Loader(loader.store, loader.settings, loader.mask).restore(state))
    return time.perf_counter() - began


def peer(store: Any, length: int, batch: int) -> Iterator[Any]:
    """The same ids in blocks of one length, masked by transformers."""
    import numpy as np
    import torch
    from transformers import AutoTokenizer, DataCollatorForLanguageModeling

    fast = AutoTokenizer.from_pretrained(store.folders[0] / "tokenizer")
    ids = np.asarray(store.shard(0).ids).astype(np.int64)
    text = length - 2
    rows = ids[: len(ids) // text * text].reshape(-1, text)
    examples: Any = [
        {"input_ids": [fast.cls_token_id, *row.tolist(), fast.sep_token_id]} for row in rows
    ]
    collate = DataCollatorForLanguageModeling(fast, mlm_probability=0.15)
    while True:
        yield from torch.utils.data.DataLoader(
            examples, batch_size=batch, shuffle=True, collate_fn=collate, drop_last=True
        )


if __name__ == "__main__":
    main()
