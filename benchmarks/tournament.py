"""A tournament of pretraining recipes: arms are changes of a preset; the hours go to the promising.

    python benchmarks/tournament.py --corpus wiki --corpus reviews --out arena
    python benchmarks/tournament.py … --arm "masks 30 to 15" --seeds 5 --tokens 600k
    python benchmarks/tournament.py … --change "64 sequences: data.batch_size=64"

Fair: every arm gets the tokens that its measured speed makes of the same seconds (--equal tokens
gives all the same tokens); arms are paired by seed, which decides initial weights, samples and
masks; all are asked the same held-out masks (`litebert evaluate`) and the same probes.

The noise comes first: the preset itself, once a seed. Then rounds of successive halving: after each
the better half of the arms goes on with three times the tokens. An arm is better where its mean
paired difference from the preset is more than twice the deviation of those differences (and of the
preset's own seeds), and it is adopted only where that is so on every corpus.

Everything is in OUT/results.jsonl, a line a run; the same command goes on where it was.

Panel: loss and accuracy of masked tokens and accuracy of sentence order on held-out text; a
logistic regression on frozen vectors of film reviews with 200, 1,000 and all labels; the rank
correlation of frozen vectors on STS-B and BLiMP's minimal pairs, where LITEBERT_DATA has them.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import texts

FALLING = "stages=[{fraction=0.25,mask_fraction=0.3},{fraction=0.25,mask_fraction=0.25}," + (
    "{fraction=0.25,mask_fraction=0.2},{fraction=0.25,mask_fraction=0.15}]"
)
ARMS: dict[str, list[str]] = {
    "masks 30 to 15": [FALLING],
    "masks 30": ["masking.fraction=0.3"],
    "[MASK] only": ["masking.mask_fraction=1.0", "masking.random_fraction=0.0"],
    "short first": ["stages=[{fraction=0.5,max_length=64},{fraction=0.5}]"],
    "batch ramp": ["stages=[{fraction=0.3,batch_size=8},{fraction=0.3},"
                   "{fraction=0.4,batch_size=32}]"],
    "three layers": ["model.num_hidden_layers=3"],
    "wider": ["model.hidden_size=192", "model.intermediate_size=768",
              "model.num_attention_heads=6"],
    "second moment 0.98": ["optimizer.betas=[0.9, 0.98]"],
    "learning rate 3e-3": ["optimizer.learning_rate=3e-3"],
}  # fmt: skip
BASE = "the preset"
HIGHER = {
    "accuracy",
    "order",
    "film_200",
    "film_1000",
    "film_all",
    "stsb",
    "blimp",
}  # is better; loss: lower
DECIDING = "film_1000"  # what halving goes by
GROWTH = 3
LABELS = {"film_200": 200, "film_1000": 1000, "film_all": 6000}


@dataclass(frozen=True)
class Entry:
    """One run to make."""

    corpus: str
    arm: str
    seed: int
    tokens: int

    @property
    def key(self) -> str:
        return json.dumps([self.corpus, self.arm, self.seed, self.tokens])


class Arena:
    """The results so far, and the way to more."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.path: Path = options.out / "results.jsonl"
        options.out.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        self.found: dict[str, dict[str, Any]] = {row["key"]: row for row in map(json.loads, lines)}

    def result(self, entry: Entry) -> dict[str, float]:
        """The panel of a run; made now if it is not there."""
        if entry.key not in self.found:
            began = time.monotonic()
            panel = self._run(entry)
            row = {"key": entry.key, "seconds": time.monotonic() - began, "panel": panel}
            self._write(row)
            shown = "  ".join(f"{name} {value:.3f}" for name, value in panel.items())
            print(f"  {entry.arm:20} seed {entry.seed}  {shown}", flush=True)
        return self.found[entry.key]["panel"]

    def speed(self, arm: str) -> float:
        """Tokens a second of an arm, measured once."""
        key = json.dumps(["speed", arm])
        if key not in self.found:
            from litebert.configs.load import load_preset
            from litebert.train.speed import measure_speed

            preset = load_preset(self.options.preset, changes(arm))
            size, length = preset.data.batch_size, preset.data.max_length
            self._write({"key": key, "speed": measure_speed(preset, size, length, 3.0)
                         .tokens_per_second})  # fmt: skip
        return self.found[key]["speed"]

    def tokens(self, arm: str, tokens: int) -> int:
        """What an arm gets where the preset gets so many."""
        if self.options.equal == "tokens" or arm == BASE:
            return tokens
        return round(tokens * self.speed(arm) / self.speed(BASE))

    def _write(self, row: dict[str, Any]) -> None:
        self.found[row["key"]] = row
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")

    def _run(self, entry: Entry) -> dict[str, float]:
        import litebert

        with tempfile.TemporaryDirectory() as scratch:
            run = Path(scratch) / "run"
            overrides = [*changes(entry.arm), f"seed={entry.seed}", "evaluation.every=1.0"]
            budget = f"{entry.tokens}tok"
            litebert.pretrain(
                self.options.preset, entry.corpus, run, budget=budget, overrides=overrides
            )
            return panel(run, entry.corpus)


def changes(arm: str) -> list[str]:
    return ARMS.get(arm, [])


def panel(run: Path, corpus: str) -> dict[str, float]:
    """All that is measured of a run."""
    import litebert

    # The model without its run: ALBERT's masks for all arms.
    report: Any = litebert.evaluate(run / "model", corpus=corpus, sequences=1024)
    masked, order = report.objectives["masked_lm"], report.objectives.get("sentence_order")
    found = {"loss": masked.loss, "accuracy": masked.accuracy}
    if order is not None:
        found["order"] = order.accuracy
    if (pairs := texts.DATA / "blimp").is_dir():
        scored: Any = litebert.evaluate(run / "model", blimp=pairs)
        found["blimp"] = scored.plain
    return {**found, **dict(film_probe(run)), **dict(similarity(run))}


def vectors(run: Path, sentences: list[str]) -> Any:
    import litebert

    with tempfile.TemporaryDirectory() as scratch:
        return litebert.embed(run, sentences, Path(scratch) / "out.npy")


def film_probe(run: Path) -> Iterator[tuple[str, float]]:
    """Frozen vectors, a logistic regression, accuracy on the demo's test sentences."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    from litebert.demos.reviews import read_sentences

    sentences = read_sentences()
    every = [*sentences.train, *sentences.test]
    x = StandardScaler().fit_transform(vectors(run, [example.first for example in every]))
    y = [example.label for example in every]
    edge = len(sentences.train)
    for name, count in LABELS.items():
        scores = []
        for seed in range(3 if count < edge else 1):
            chosen = sentences.choose(count, seed)
            fitted = LogisticRegression(C=0.01, max_iter=500)
            fitted.fit(x[chosen], [y[place] for place in chosen])
            scores.append(float(fitted.score(x[edge:], y[edge:])))
        yield name, statistics.fmean(scores)


def similarity(run: Path) -> Iterator[tuple[str, float]]:
    """STS-B's dev set by the cosine of frozen vectors."""
    import numpy as np
    from scipy.stats import spearmanr

    path = texts.DATA / "glue" / "STS-B" / "dev.tsv"
    if not path.exists():
        return
    with path.open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    rows = [row for row in rows if len(row) >= 10]
    found = vectors(run, [row[7] for row in rows] + [row[8] for row in rows])
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    one, other = np.split(found, 2)
    ranked: Any = spearmanr((one * other).sum(1), [float(row[9]) for row in rows])
    yield "stsb", float(ranked.statistic)


# ------------------------------------------------------------------------------- the comparison


@dataclass(frozen=True)
class Difference:
    """An arm against the preset, paired by seed: more is better."""

    mean: float
    deviation: float  # of the differences, or of the preset's own seeds if that is more

    @property
    def better(self) -> bool:
        return self.mean > 2 * self.deviation


def difference(arm: list[float], base: list[float], higher: bool) -> Difference:
    sign = 1 if higher else -1
    pairs = [sign * (a - b) for a, b in zip(arm, base, strict=True)]
    spread = [statistics.stdev(each) if len(each) > 1 else 0.0 for each in (pairs, base)]
    return Difference(statistics.fmean(pairs), max(spread))


def play(
    arena: Arena, corpus: str, arms: list[str], tokens: int
) -> dict[str, dict[str, Difference]]:
    """One round on one corpus: every arm's differences, by measure."""
    seeds = range(arena.options.seeds)
    base = [arena.result(Entry(corpus, BASE, seed, tokens)) for seed in seeds]
    print(f"{corpus}, {tokens:,} tokens, noise of {BASE} over {len(seeds)} seeds:")
    for name in base[0]:
        values = [panel[name] for panel in base]
        spread = statistics.stdev(values) if len(values) > 1 else float("nan")
        print(f"  {name:10} {statistics.fmean(values):.4f} ± {spread:.4f}")
    found = {}
    for arm in arms:
        entries = [Entry(corpus, arm, seed, arena.tokens(arm, tokens)) for seed in seeds]
        panels = [arena.result(entry) for entry in entries]
        found[arm] = {
            name: difference([p[name] for p in panels], [p[name] for p in base], name in HIGHER)
            for name in base[0]
        }
        shown = "  ".join(
            f"{name} {d.mean:+.4f}{'*' if d.better else ''}" for name, d in found[arm].items()
        )
        print(f"{arm:22} {shown}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", action="append", required=True, help="a prepared store")
    parser.add_argument("--preset", default="albert-tiny")
    parser.add_argument("--arm", action="append", help=f"default: all of {', '.join(ARMS)}")
    parser.add_argument(
        "--change", action="append", default=[], help="an arm of your own: 'NAME: a.b=c d.e=f'"
    )
    parser.add_argument("--tokens", default="400k", help="of the first round, for the preset")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--equal", choices=("seconds", "tokens"), default="seconds")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    own = {name: text.split() for name, _, text in (one.partition(":") for one in options.change)}
    ARMS.update(own)
    unknown = set(options.arm or ()) - set(ARMS)
    if unknown:
        sys.exit(f"no such arm: {', '.join(sorted(unknown))}; there are {', '.join(ARMS)}")
    from litebert.base.budget import parse_budget

    tokens = int(parse_budget(f"{options.tokens}tok").amount)
    arena, arms = Arena(options), [*(options.arm or ()), *own] or list(ARMS)
    last: list[dict[str, dict[str, Difference]]] = []
    for number in range(options.rounds):
        last = [play(arena, corpus, arms, tokens * GROWTH**number) for corpus in options.corpus]
        if number + 1 < options.rounds:
            ranked = sorted(arms, key=lambda arm: -sum(found[arm][DECIDING].mean for found in last))
            arms = ranked[: max(len(ranked) // 2, 1)]
            print(f"round {number + 1}: {', '.join(arms)} go on", flush=True)
    for arm in arms:
        ahead = [name for name in last[0][arm] if all(found[arm][name].better for found in last)]
        verdict = f"better on every corpus: {', '.join(ahead)}" if ahead else "not adopted"
        print(f"{arm}: {verdict}")


if __name__ == "__main__":
    main()
