"""Interrupt uploads and downloads 200 times: is anything cut short ever seen, is anything lost?

    python -m tests.remote [--kills 100] [--faults 100] [--seed 0] [--work prepare,pretrain]

A preparation from S3 to S3, and a pretraining from S3 to S3, against moto's server on loopback
through a proxy that resets connections in the middle of an answer, answers with status 500, or is
slow; and processes that are killed at random moments. After every life, what can be seen there is
compared: objects of a store with those of an undisturbed one, checkpoints with their manifests.
What finishes must be equal to what an undisturbed command made.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

from tests.corpus.stores import write_wordpiece
from tests.remote.corpora import write_formats
from tests.remote.interruptions import Bucket, interrupt, start_anew
from tests.remote.s3 import BUCKET, Proxy, s3_server
from tests.train.runs import write_store


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="processes to kill")
    parser.add_argument("--faults", type=int, default=100, help="answers to spoil")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", default="prepare,pretrain", help="the commands to interrupt")
    options = parser.parse_args()
    works = options.work.split(",")
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, s3_server() as port:
        scratch, bucket = Path(folder), Bucket(port)
        bucket.client.create_bucket(Bucket=BUCKET)
        write_formats(scratch / "raw")
        bucket.put(scratch / "raw", "raw/")
        bucket.put(write_wordpiece(scratch / "tokenizer"), "tokenizer/")
        bucket.put(write_store(scratch / "text"), "corpus/")
        with Proxy(port, chance) as proxy:
            for work in works:
                start_anew(bucket, scratch)
                before = dict(proxy.kinds)
                share = (options.kills // len(works), options.faults // len(works))
                tally = interrupt(work, bucket, proxy, scratch, *share, chance)
                kinds = {k: n - before.get(k, 0) for k, n in proxy.kinds.items()}
                print(
                    f"{work}: {tally.lives} lives, {tally.kills} killed, faults {kinds}, "
                    f"{tally.errors} gave up in one sentence, {tally.finished} finished: all equal",
                    flush=True,
                )
    print("nothing cut short was ever visible, nothing was lost")


if __name__ == "__main__":
    main()
