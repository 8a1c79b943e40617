"""Time to quality: how soon our run is as good on held-out text as Hugging Face's long one is.

    python benchmarks/time_to_quality.py --out results.json [--corpus STORE] [--minutes 20]
    python benchmarks/time_to_quality.py --out results.json --only peer     then: --only ours
    python benchmarks/time_to_quality.py --plot results.json                report and plot again

The peer is AlbertForPreTraining, of a preset's architecture, in the Trainer: Hugging Face's own
initial values, fused AdamW, bf16 where the hardware has it and else fp32, linear warmup and decay
over its minutes, and the best of three learning rates, found in short runs. Doubts go in its
favour: evaluations on held-out text and the search do not count as its time, it writes no
checkpoints, it has our setting of malloc, its segments come ready from our loader (as many
sequences a step as ours has on average), and it learns from the masks that it is examined on
(`--their-masks`: single tokens by the collator of `transformers` instead).

Ours is `litebert.pretrain` with the preset's own recipe, planned for a quarter of the peer's time;
everything counts, from the opening of the corpus on. Both are examined by litebert's evaluation on
the same held-out documents and masks. Bar: the peer's last loss, at least 0.7 below the unigram
level, is reached in 25 % of the peer's time.

Results are written after every evaluation, with a plot beside them (results.png). A part that is
there already is not run again; to repeat it, name another file, or remove it from the file (and,
for ours, the folder results-ours). An interrupted long run of the peer begins anew; ours resumes
from its checkpoint.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import texts

if TYPE_CHECKING:
    from litebert.configs.schema import Preset
    from litebert.corpus.store import Store
    from litebert.train.metrics import EvaluationMetrics, Means
    from peer import Evaluated, TimedRuns

RATES = (3e-4, 1e-3, 2e-3)
TIME_BAR, BELOW_UNIGRAM = 0.25, 0.7
Point = dict[str, float]


# ------------------------------------------------------------------------------- the results file


@dataclass
class Results:
    """What was measured so far: a JSON file, written whole after every change."""

    path: Path
    parts: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Results:
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return cls(path, found)

    def save(self) -> None:
        scratch = self.path.with_suffix(".partial")
        scratch.write_text(json.dumps(self.parts, indent=2) + "\n", encoding="utf-8")
        scratch.replace(self.path)

    def open(self, part: str, settings: dict[str, Any]) -> dict[str, Any]:
        """A part of the results; one that was made with other settings is refused."""
        there = self.parts.setdefault(part, {"settings": settings})
        if there["settings"] != settings:
            sys.exit(
                f"{self.path}: its {part!r} has other settings ({there['settings']}); use those, "
                f"remove {part!r} from the file, or name another with --out"
            )
        self.save()
        return there


def to_point(seconds: float, step: int, tokens: int, means: Means) -> Point:
    """One evaluation on held-out text."""
    found = {
        "loss": means.loss["masked_lm"],
        "accuracy": means.accuracy["masked_lm"],
        "order_accuracy": means.accuracy.get("sentence_order"),
    }
    known = {name: value for name, value in found.items() if value is not None}
    return {"seconds": round(seconds, 3), "step": step, "tokens": tokens, **known}


def describe(point: Point) -> str:
    order = f", order {point['order_accuracy']:.1%}" if "order_accuracy" in point else ""
    return (
        f"{point['seconds'] / 60:6.2f} minutes, step {point['step']:,}: held-out loss "
        f"{point['loss']:.4f}, accuracy {point['accuracy']:.1%}{order}"
    )


# ------------------------------------------------------------------------------- the peer


def run_peer(options: argparse.Namespace, results: Results, preset: Preset, store: Store) -> None:
    """The search for a rate, then the long run; what is there already is kept."""
    import peer
    from litebert.base.runtime import default_device, keep_freed_memory, resolve_precision

    keep_freed_memory()
    precision = resolve_precision("auto", default_device())
    batch = options.batch or peer.sequences_per_step(preset, store)
    part = results.open(
        "peer",
        {
            "minutes": options.minutes,
            "search_minutes": options.search,
            "precision": precision,
            "batch": batch,
            "masks": "theirs" if options.their_masks else "ours",
            "warmup": options.warmup,
        },
    )
    if part.get("finished"):
        print("the peer's long run is there already")
        return
    why = "" if precision == "bf16" else " (no bf16 in this hardware)"
    print(f"huggingface: {precision}{why}, {batch} sequences a step, our malloc", flush=True)
    with tempfile.TemporaryDirectory() as config:
        peer.write_config(preset, Path(config))
        side = peer.TimedRuns(
            preset, store, Path(config), precision, batch, options.their_masks, options.warmup
        )
        search(options, results, part, side)
        part.update(rate=best_rate(part["search"], options.rates), curve=[], finished=False)

        def tell(evaluated: Evaluated) -> None:
            part["curve"].append(to_point(*evaluated))
            results.save()
            print(f"huggingface, rate {part['rate']:g}: {describe(part['curve'][-1])}", flush=True)

        side.train(part["rate"], options.minutes * 60, options.evaluations, tell)
    part["finished"] = True
    results.save()


def search(
    options: argparse.Namespace, results: Results, part: dict[str, Any], side: TimedRuns
) -> None:
    """A short run for every rate, unless there is only one."""
    found = part.setdefault("search", {})
    for rate in options.rates if len(options.rates) > 1 else ():
        if f"{rate:g}" in found:
            continue
        evaluated: list[Evaluated] = []
        side.train(rate, options.search * 60, 1, evaluated.append)
        found[f"{rate:g}"] = point = to_point(*evaluated[-1])
        results.save()
        print(f"search, rate {rate:g}: {describe(point)}", flush=True)


def best_rate(found: dict[str, Point], rates: list[float]) -> float:
    """The rate with the lowest held-out loss."""
    return min(rates, key=lambda rate: found[f"{rate:g}"]["loss"]) if len(rates) > 1 else rates[0]


# ------------------------------------------------------------------------------- ours


def run_ours(
    options: argparse.Namespace, results: Results, overrides: list[str], corpus: str
) -> None:
    """`litebert.pretrain` with the preset's recipe; its folder lies beside the results."""
    import litebert
    from litebert.train.callbacks import Callback, RunStarted
    from litebert.train.metrics import read_metrics

    minutes = options.ours_minutes or TIME_BAR * options.minutes
    part = results.open("ours", {"minutes": minutes, "evaluations": options.ours_evaluations})
    run = options.out.with_name(f"{options.out.stem}-ours")
    if run.exists():
        print(f"{run}: is there already and is used or continued")

    def note() -> None:
        lines = [line for line in read_metrics(run) if line.kind == "evaluation"]
        part["curve"] = [
            to_point(line.time.seconds, line.step, line.tokens, line) for line in lines
        ]
        results.save()

    class Notes(Callback):
        def on_start(self, run: RunStarted) -> None:
            part["finished"] = False

        def on_evaluation(self, metrics: EvaluationMetrics) -> None:
            note()
            print(f"litebert: {describe(part['curve'][-1])}", flush=True)

        def on_message(self, message: str) -> None:
            print(f"litebert: {message}", flush=True)

    overrides = [*overrides, f"evaluation.every={1 / options.ours_evaluations}"]
    made = litebert.pretrain(
        options.preset, corpus, run, budget=f"{minutes * 60:.1f}s", overrides=overrides,
        callbacks=[Notes()],
    )  # fmt: skip
    note()
    part["finished"] = made.finished
    results.save()


# ------------------------------------------------------------------------------- the outcome


def reached(curve: list[Point], level: float) -> tuple[float, float] | None:
    """When a loss was reached: on the line between two evaluations, and at the first one below."""
    for number, point in enumerate(curve):
        if point["loss"] > level:
            continue
        if number == 0:
            return point["seconds"], point["seconds"]
        before = curve[number - 1]
        fraction = (before["loss"] - level) / (before["loss"] - point["loss"])
        between = before["seconds"] + fraction * (point["seconds"] - before["seconds"])
        return between, point["seconds"]
    return None


def report(results: Results) -> None:
    """One ratio a line."""
    peer, ours = results.parts.get("peer", {}), results.parts.get("ours", {})
    unigram = results.parts["common"]["unigram"]
    for name, part in (("huggingface", peer), ("litebert", ours)):
        if part.get("curve"):
            ended = "" if part.get("finished") else "  (interrupted: not the end of its schedule)"
            print(f"{name:11} {describe(part['curve'][-1])}{ended}")
    if not peer.get("curve"):
        return
    last = peer["curve"][-1]
    below = unigram - last["loss"]
    print(f"the peer ends {below:.2f} below the unigram level {unigram:.2f} (bar {BELOW_UNIGRAM})")
    if not ours.get("curve"):
        print("time to the peer's loss: ours has not been evaluated yet")
        return
    found = reached(ours["curve"], last["loss"])
    if found is None:
        best = min(point["loss"] for point in ours["curve"])
        print(f"time to the peer's loss: not reached (ours {best:.4f}; bar {TIME_BAR:.0%})")
        return
    between, first = (seconds / last["seconds"] for seconds in found)
    print(
        f"time to the peer's loss: {between:.1%} of the peer's, {found[0] / 60:.2f} of "
        f"{last['seconds'] / 60:.2f} minutes (bar {TIME_BAR:.0%}; first evaluation below it: "
        f"{first:.1%})"
    )


def plot(results: Results) -> None:
    """Loss against minutes, beside the results."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: pip install matplotlib")
        return
    matplotlib.use("agg")
    from matplotlib import pyplot

    common = results.parts["common"]
    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    axes.axhline(common["unigram"], color="gray", linestyle="--", label="unigram level")
    for part, label in (("peer", "transformers Trainer"), ("ours", "litebert")):
        curve = results.parts.get(part, {}).get("curve") or []
        minutes = [point["seconds"] / 60 for point in curve]
        axes.plot(minutes, [point["loss"] for point in curve], marker=".", label=label)
    last = (results.parts.get("peer", {}).get("curve") or [None])[-1]
    if last is not None:
        axes.axhline(last["loss"], color="gray", linestyle=":", label="the Trainer's last loss")
    axes.set_xlabel("minutes")
    axes.set_ylabel("held-out masked-LM loss")
    axes.set_title(f"{common['settings']['preset']}: time to quality")
    axes.set_xlim(left=0)
    axes.legend()
    path = results.path.with_suffix(".png")
    figure.savefig(path, dpi=150)
    print(f"plot: {path}")


# ------------------------------------------------------------------------------- the parent


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    texts.add_options(parser)
    parser.add_argument("--corpus", help="a prepared store, instead of preparing one")
    parser.add_argument("--out", type=Path, default=Path("time_to_quality.json"))
    parser.add_argument("--preset", default="albert-mini")
    parser.add_argument("--set", action="append", default=[], help="a setting of the preset")
    parser.add_argument("--minutes", type=float, default=20.0, help="of the peer's long run")
    parser.add_argument("--ours-minutes", type=float, help="default: 25 %% of --minutes")
    parser.add_argument("--search", type=float, default=3.0, help="minutes for each rate")
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES), help="the peer's")
    parser.add_argument("--warmup", type=float, default=0.05, help="fraction of the peer's time")
    parser.add_argument("--batch", type=int, help="the peer's sequences a step; default: as ours")
    parser.add_argument("--their-masks", action="store_true", help="single tokens for the peer")
    parser.add_argument("--evaluations", type=int, default=20, help="of the peer on held-out text")
    parser.add_argument("--ours-evaluations", type=int, default=10, help="they cost it time")
    parser.add_argument("--sequences", type=int, default=256, help="held out, for each evaluation")
    parser.add_argument("--only", choices=("peer", "ours"), help="one of the two runs")
    parser.add_argument("--plot", type=Path, metavar="RESULTS", help="report and plot again")
    return parser.parse_args()


def run_part(options: argparse.Namespace, corpus: str) -> None:
    """One side, in this process."""
    import litebert
    from litebert.corpus.statistics import token_counts, unigram_loss
    from litebert.train.build import fit_to_corpus

    overrides = [*options.set, f"evaluation.sequences={options.sequences}"]
    store = litebert.open_store(corpus)
    preset = fit_to_corpus(litebert.load_preset(options.preset, overrides), store)
    results = Results.read(options.out)
    settings = {"preset": options.preset, "overrides": overrides, "corpus": store.checksum}
    common = results.open("common", settings)
    common["unigram"] = unigram_loss(token_counts(store))
    if options.only == "peer":
        run_peer(options, results, preset, store)
    else:
        run_ours(options, results, overrides, corpus)


def prepare_corpus(options: argparse.Namespace) -> str:
    """A store beside the results, so that both parts find the same one."""
    from litebert.corpus.preparing.prepare import prepare

    folder = options.out.with_name(f"{options.out.stem}-corpus")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "store").exists():
        text, tokenizer = texts.resolve(options, folder)
        prepare([text], tokenizer, folder / "store")
    return str(folder / "store")


def main() -> None:
    options = read_options()
    if options.plot is None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        corpus = options.corpus or prepare_corpus(options)
        if options.only:
            run_part(options, corpus)
        else:  # each side in a process of its own
            for part in ("peer", "ours"):
                command = [sys.executable, *sys.argv, "--corpus", corpus, "--only", part]
                subprocess.run(command, check=True)
            return
    results = Results.read(options.plot or options.out)
    report(results)
    plot(results)


if __name__ == "__main__":
    main()
