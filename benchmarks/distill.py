"""A teacher against none: the same student, the same text, the same budget.

    python benchmarks/distill.py --teacher FOLDER --corpus STORE --budget 20m --out distill

STORE is prepared with the teacher's tokenizer (`litebert prepare … --tokenizer FOLDER`), or with
any other. Both sides are runs of `litebert`, so the time that the teacher takes counts where the
budget is a time. Then, of the teacher and of both students: STS-B by the cosine of the vectors
(nothing is fitted), STS-B with the encoder frozen (`finetune --freeze`), SST-2 fine-tuned. DATA has
glue/ with the published files. What is finished is kept in --out, so the same command goes on.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import litebert
from litebert.cli.live import live_view
from litebert.inference.embed import embed_texts
from litebert.inference.model_folder import open_tokenizer
from litebert.model.folder import find_model_folder
from litebert.model.model import Model
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.tasks.metrics.correlation import CORRELATION_METRICS
from litebert.tasks.published.glue import read_glue

DATA = Path(os.environ.get("LITEBERT_DATA", Path(__file__).parents[2] / "shared" / "data"))


def train(options: argparse.Namespace) -> dict[str, Path]:
    """Both students; a run that is finished is only looked up."""
    plain, taught = options.out / "without", options.out / "with"
    with live_view() as view:
        if not options.only or "without" in options.only:
            result = litebert.pretrain(
                options.student, options.corpus, plain, budget=options.budget,
                overrides=options.set_both, callbacks=[view],
            )  # fmt: skip
            print(
                f"without: {result.step:,} steps, {result.tokens:,} tokens, {result.seconds:.0f} s"
            )
        if not options.only or "with" in options.only:
            result = litebert.distill(
                options.teacher, options.student, options.corpus, taught, budget=options.budget,
                objectives=options.objective, overrides=[*options.set_both, *options.set],
                callbacks=[view],
            )  # fmt: skip
            print(f"with: {result.step:,} steps, {result.tokens:,} tokens, {result.seconds:.0f} s")
    arms = {"without": plain, "with": taught, "teacher": options.teacher}
    return {name: path for name, path in arms.items() if not options.only or name in options.only}


def cosines(folder: Path, data: Path) -> float:
    """Spearman's correlation of STS-B's scores with the cosine of the vectors."""
    folder = find_model_folder(folder)
    examples = read_glue("sts-b", data, "dev")
    settings = SentenceEncoderSettings(pooling="mean", normalize=True, max_length=128)
    texts = [text for one in examples for text in (one.first, one.second or "")]
    vectors = embed_texts(Model.load(folder), open_tokenizer(folder), texts, settings)
    found = (vectors[::2] * vectors[1::2]).sum(1)
    labels = [float(one.label or 0) for one in examples]
    return CORRELATION_METRICS["spearman"](labels, found.tolist())


def tune(
    task: str, folder: Path, out: Path, options: argparse.Namespace, changes: Sequence[str],
    freeze: bool = False,
) -> list[float]:  # fmt: skip
    """The first metric of each seed."""
    metric = {"sts-b": "spearman", "sst-2": "accuracy"}[task]
    with live_view() as view:
        done = litebert.finetune(
            folder, task, out, data=options.data / "glue", freeze=freeze, baseline=False,
            overrides=changes, seeds=1 if freeze else options.seeds, callbacks=[view],
        )  # fmt: skip
    assert done.report is not None, "stopped"
    return [result.value(metric) for result in done.report.seeds]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--student", default="albert-mini")
    parser.add_argument("--budget", default="20m")
    parser.add_argument("--out", type=Path, default=Path("distill"))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--objective", action="append", default=[], help="as of `distill`")
    parser.add_argument("--set", action="append", default=[], help="for the taught student")
    parser.add_argument("--set-both", action="append", default=[], help="for both students")
    parser.add_argument("--task", action="append", help="cosine, frozen, sst-2; all by default")
    parser.add_argument("--only", action="append", help="with, without, teacher; all by default")
    parser.add_argument("--tune", action="append", default=["epochs=1"], help="of SST-2's recipe")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    arms = train(options)
    for name, folder in arms.items():
        asked = options.task or ["cosine", "frozen", "sst-2"]
        if "cosine" in asked:
            print(f"STS-B, cosine of vectors, {name}: {cosines(folder, options.data / 'glue'):.4f}")
        if "frozen" in asked:
            found = tune("sts-b", folder, options.out / f"{name}-frozen", options, [], freeze=True)
            print(f"STS-B, frozen, {name}: spearman {found[0]:.4f}")
        if "sst-2" in asked and name != "teacher":
            found = tune("sst-2", folder, options.out / f"{name}-sst-2", options, options.tune)
            seeds = ", ".join(f"{value:.4f}" for value in found)
            print(f"SST-2, {name}: accuracy {np.mean(found):.4f} ({seeds})", flush=True)


if __name__ == "__main__":
    main()
