"""Is the order of samples the same whatever the ranks, the workers and the restarts?

    python benchmarks/order.py [--input FILE] [--tokenizer FOLDER] [--documents 1000]

Two epochs of ALBERT's pairs with n-gram masking, for 1, 2 and 4 ranks x 0, 2 and 4 workers: every
rank's share is hashed sequence by sequence (ids, types, label, masked positions and targets), put
back into the global batches and compared with one rank without workers. Then 50 stops at random
positions: a new loader restores the saved position and its next 20 batches are compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import tempfile
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

import texts
from litebert.base.batches import Batch
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.prefetch import Prefetcher
from litebert.corpus.preparing.prepare import prepare
from litebert.corpus.store import Store, open_store
from litebert.objectives.masking import Masker, Masking
from litebert.reading.chunks import ReadSettings, split_chunks
from litebert.reading.records import Skipped, read_documents
from litebert.reading.sources import find_sources

SETTINGS = LoaderSettings(max_length=128, batch_size=64, seed=7)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    texts.add_options(parser)
    parser.add_argument("--documents", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text, tokenizer = texts.resolve(options, Path(folder))
        some = Path(folder) / "some.jsonl"
        some.write_text("".join(islice(lines(text), options.documents)))
        prepare([str(some)], tokenizer, f"{folder}/store")
        compare(open_store(f"{folder}/store"))


def lines(text: str) -> Iterable[str]:
    reading = ReadSettings()
    for source in find_sources([text], reading.format):
        for unit in split_chunks(source, reading):
            for document in read_documents(unit, reading, Skipped()):
                yield json.dumps({"text": document.text or document.sentences}) + "\n"


def digests(batch: Batch) -> list[bytes]:
    """One digest a sequence, of all that training sees of it."""
    hidden = np.full(len(batch.ids), -1, np.int64)
    hidden[batch.positions] = batch.targets
    ends = batch.starts + batch.lengths
    return [
        hashlib.blake2b(
            batch.ids[a:b].tobytes() + batch.token_types[a:b].tobytes() + hidden[a:b].tobytes()
            + label.tobytes(), digest_size=8,
        ).digest()
        for a, b, label in zip(batch.starts.tolist(), ends.tolist(), batch.labels, strict=True)
    ]  # fmt: skip


def loader(store: Store, rank: int = 0, ranks: int = 1, epochs: int | None = 2) -> Loader:
    return Loader(store, SETTINGS, Masker(Masking(), store.tokenizer), rank, ranks, epochs)


def stream(store: Store, ranks: int, workers: int) -> list[list[bytes]]:
    """The global batches, from what each rank saw of them."""
    shares = []
    for rank in range(ranks):
        with Prefetcher(loader(store, rank, ranks), workers) as batches:
            shares.append([digests(batch) for batch in batches])
    found = []
    for parts in zip(*shares, strict=True):
        whole = [b""] * sum(map(len, parts))
        for rank, part in enumerate(parts):
            whole[rank::ranks] = part
        found.append(whole)
    return found


def compare(store: Store) -> None:
    wanted = stream(store, 1, 0)
    name = hashlib.sha256(b"".join(one for batch in wanted for one in batch)).hexdigest()[:16]
    print(f"two epochs, {sum(map(len, wanted)):,} sequences in {len(wanted):,} batches: {name}")
    for ranks in (1, 2, 4):
        for workers in (0, 2, 4):
            same = stream(store, ranks, workers) == wanted
            print(
                f"ranks {ranks}, workers {workers}: {'equal' if same else 'DIFFERENT'}", flush=True
            )
    chance, slowest, equal = random.Random(0), 0.0, 0
    for _ in range(50):
        stop = chance.randrange(len(wanted))
        here = loader(store, epochs=None)
        for _ in range(stop):
            here.skip()
        state = json.loads(json.dumps(here.state()))
        after = [digests(batch) for batch in islice(here, 20)]
        began = time.perf_counter()
        again = loader(store, epochs=None).restore(state)
        slowest = max(slowest, time.perf_counter() - began)
        equal += [digests(batch) for batch in islice(again, 20)] == after
        assert after[0] == wanted[stop] or stop == len(wanted) - 1
    print(f"{equal} of 50 stops: the next 20 batches equal; slowest restore {slowest * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
