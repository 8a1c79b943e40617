"""The demo: the whole road on film reviews, and what pretraining is worth at its end.

    OUT/tokenizer, OUT/corpus       made once
    OUT/10m/run                     half of the budget: ALBERT, masked words and sentence order
    OUT/10m/random, word-vectors    the same model before its first step, without and with a start
    OUT/10m/comparison              all of them fine-tuned, with few and with all labels
    OUT/10m/sentiment               the best classifier, to play with
    OUT/10m/report.html             what came of it; findings.json has it for programs

Every stage is kept when it is done, so the same command goes on after an interruption.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from litebert.base.budget import parse_budget
from litebert.base.errors import SettingsError
from litebert.base.files import as_text, hold, read_json, write_whole
from litebert.corpus.prepare import PrepareSettings, prepare
from litebert.corpus.tokenizers import train_tokenizer
from litebert.demo.compare import ALL, Cell, Job, Plan, compare
from litebert.demo.findings import Findings, rows_of
from litebert.demo.learned import fill_gaps, judge_orders
from litebert.demo.page import page
from litebert.demo.reviews import write_texts
from litebert.finetuning.runs import MODEL
from litebert.model.model import Model
from litebert.planning.count import parameters
from litebert.presets.load import load_preset
from litebert.text.tokenizer import load_tokenizer
from litebert.train.evaluate import evaluate
from litebert.train.metrics import read_metrics
from litebert.train.pretrain import pretrain
from litebert.train.run import RUN
from litebert.train.untrained import save_untrained
from litebert.train.watch import Watcher

PRESET = "albert-tiny"
VOCABULARY, SAMPLE, HELD_OUT = 8000, 60_000, 0.02
SHORTEST = 60  # seconds of budget
ORDERS = 4  # examples shown
LOOKS = 2000  # held-out sequences that the encoder is measured on
RANDOM, VECTORS, PRETRAINED = "random start", "word vectors only", "pretrained"
LARGER = ("model.hidden_size=256", "model.embedding_size=128", "optimizer.rate=1.5e-3")
SAVINGS = {  # what the layers share, and whether the embeddings are narrow
    "ALBERT: one layer for all, narrow embeddings": ("all", True),
    "without narrow embeddings": ("all", False),
    "without sharing": ("none", True),
    "without either, as BERT": ("none", False),
}
COMMANDS = """litebert predict {sentiment} --input YOUR.csv --out guesses.jsonl    praise or blame?
litebert evaluate {run} --corpus {corpus}      the encoder once more
litebert plot {run} --out curves.png
litebert demo --budget 1h                              more of everything

litebert tokenizer train YOUR_TEXT --out tokenizer     the same with text of your own
litebert prepare YOUR_TEXT --tokenizer tokenizer --out corpus
litebert pretrain albert-mini --corpus corpus --out run --budget 2h
litebert finetune run --task classify --train YOUR_LABELS.csv --out tuned --seeds 5"""


@dataclass(frozen=True)
class Scale:
    """What a budget allows: a share of it for pretraining, how much is compared, and the model."""

    seconds: float  # of budget, from which on
    pretraining: float
    plan: Plan
    sets: tuple[str, ...] = ()


SCALES = (
    Scale(1800, 0.6, Plan({200: 60, 1000: 120, ALL: 400}, (2e-4, 4e-4, 8e-4), 5), LARGER),
    Scale(240, 0.5, Plan({200: 60, 1000: 120, ALL: 250}, (5e-4, 1e-3), 5)),
    Scale(0, 0.5, Plan({200: 30, 1000: 60}, (1e-3,), 3)),
)


def scale_of(seconds: float) -> Scale:
    """What so much time allows."""
    return next(scale for scale in SCALES if seconds >= scale.seconds)


class Guide:
    """What the demo shows on its way; override what you want to see."""

    def stage(self, title: str) -> None:
        """A stage begins."""

    def say(self, text: str) -> None:
        """Something about it."""

    def pretraining(self) -> AbstractContextManager[Watcher]:
        """Something that shows a run."""
        return nullcontext(Watcher())

    def comparing(self, jobs: int) -> AbstractContextManager[Callable[[Job, float], None]]:
        """Something to tell each finished fine-tuning to."""
        return nullcontext(lambda job, accuracy: None)

    def found(self, findings: Findings, page: Path, commands: str) -> None:
        """All of it, and the page that tells it."""


def demo(out: Path, budget: str = "10m", guide: Guide | None = None) -> Findings | None:
    """Walk the road; None where it was stopped on the way."""
    allowed = parse_budget(budget)
    if allowed.kind != "seconds" or allowed.amount < SHORTEST:
        raise SettingsError(f"--budget {budget}: name a time of {SHORTEST}s or more, say 10m")
    home = out / budget.replace(" ", "")
    home.mkdir(parents=True, exist_ok=True)
    with hold(home, "litebert demo"):
        return _Road(out, home, allowed.amount, guide or Guide()).walk()


class _Road:
    """One call of `demo`."""

    def __init__(self, out: Path, home: Path, seconds: float, guide: Guide) -> None:
        self.out, self.home, self.budget, self.guide = out, home, seconds, guide
        self.tokenizer, self.corpus, self.run = out / "tokenizer", out / "corpus", home / "run"
        self.scale = scale_of(seconds)
        self.preset = load_preset(PRESET, self.scale.sets)

    def walk(self) -> Findings | None:
        """Stage after stage."""
        self._prepare()
        if not self._pretrain():
            return None
        found = self._look(self._compare())
        self._report(found)
        return found

    def _prepare(self) -> None:
        self.guide.stage("1. Text, tokenizer, corpus")
        texts = str(self.out / "reviews.jsonl")
        write_texts(Path(texts))
        if not self.tokenizer.is_dir():
            train_tokenizer([texts], self.tokenizer, vocabulary=VOCABULARY, sample=SAMPLE)
        tokenizer = load_tokenizer(self.tokenizer)
        self.guide.say(f"{self.tokenizer}: SentencePiece, {tokenizer.vocab_size:,} pieces")
        settings = PrepareSettings(held_out=HELD_OUT)
        total = prepare([texts], self.tokenizer, self.corpus, settings).store.total
        self.guide.say(
            f"{self.corpus}: {total.documents:,} film reviews, {total.sentences:,} sentences, "
            f"{total.tokens:,} tokens"
        )

    def _pretrain(self) -> bool:
        self.guide.stage("2. Pretraining: masked words and sentence order")
        preset = self.preset
        for name, start in (("word-vectors", "warm"), ("random", "paper")):
            if not (self.home / name).is_dir():
                other = preset.model_copy(update={"start": start})
                save_untrained(other, self.corpus, self.home / name)
        with self.guide.pretraining() as watcher:
            budget = f"{self.scale.pretraining * self.budget:g}s"
            return pretrain(preset, self.corpus, self.run, budget=budget, watcher=watcher).finished

    def _compare(self) -> list[Cell]:
        self.guide.stage("3. Fine-tuning: praise or blame, with few and with many labels")
        arms = {
            RANDOM: self.home / "random", VECTORS: self.home / "word-vectors",
            PRETRAINED: self.run / MODEL,
        }  # fmt: skip
        plan = self.scale.plan
        folder = self.home / "comparison"
        with self.guide.comparing(plan.count(len(arms))) as progress:
            cells = compare(arms, plan, folder, progress)
        _keep_best(cells[-1], folder, self.home / "sentiment")
        return cells

    def _look(self, cells: list[Cell]) -> Findings:
        model, tokenizer = Model.load(self.run / MODEL), load_tokenizer(self.tokenizer)
        run = read_json(self.run / RUN)
        return Findings(
            seeds=len(cells[-1].test), rows=rows_of(cells),
            held_out=evaluate(self.run, self.corpus, sequences=LOOKS),
            gaps=fill_gaps(model, tokenizer),
            orders=judge_orders(model, self.corpus, self.preset.data.length, ORDERS),
            parameters=_savings(self.scale.sets), tokens=run["tokens"], seconds=run["seconds"],
        )  # fmt: skip

    def _report(self, found: Findings) -> None:
        commands = COMMANDS.format(
            sentiment=self.home / "sentiment", run=self.run, corpus=self.corpus
        )
        unigram = found.held_out["unigram"]
        text = page(found, read_metrics(self.run), unigram, commands)
        write_whole(self.home / "findings.json", as_text(found.as_json()).encode())
        write_whole(self.home / "report.html", text.encode())
        self.guide.stage("4. What came of it")
        self.guide.found(found, self.home / "report.html", commands)


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


def _savings(sets: Sequence[str]) -> list[tuple[str, int, int]]:
    """Parameters with and without what makes ALBERT lite, here and at the paper's base size."""
    return [
        (name, _size(PRESET, sharing, narrow, sets), _size("albert-base", sharing, narrow))
        for name, (sharing, narrow) in SAVINGS.items()
    ]


def _size(name: str, sharing: str, narrow: bool, sets: Sequence[str] = ()) -> int:
    changed = [*sets, f"model.sharing={sharing}"]
    if not narrow:
        changed.append(f"model.embedding_size={load_preset(name, sets).model.hidden_size}")
    return parameters(load_preset(name, changed))["total"]
