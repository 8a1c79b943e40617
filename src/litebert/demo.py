"""The demo: the longest road there is today, in about two minutes.

Tokenizer -> corpus -> plan -> train a tiny ALBERT (masked n-grams and sentence order) -> save ->
reload -> Google's format and back. The text is the manual that ships inside Python
(`pydoc_data`), so nothing is downloaded.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from litebert.convert.transfer import export_model, import_model
from litebert.corpus.prepare import PrepareSettings, prepare
from litebert.corpus.tokenizers import train_tokenizer
from litebert.model.model import Model
from litebert.planning.report import plan, table
from litebert.train.evaluate import evaluate
from litebert.train.pretrain import pretrain
from litebert.train.watch import Watcher

VOCABULARY = 1000
SETTINGS = ["data.length=64", "data.batch=16"]


def demo(out: Path, seconds: float, watcher: Watcher | None = None) -> None:
    """Walk the road and leave its results in `out`."""
    console = Console(highlight=False)
    console.rule("1. Text, tokenizer, corpus")
    _prepare(out, console)
    console.rule("2. Plan")
    console.print(table([plan(name) for name in ("albert-base", "bert-base")]))
    console.rule("3. Train")
    shutil.rmtree(out / "run", ignore_errors=True)
    budget = f"{seconds:g}s"
    pretrain(
        "albert-tiny", out / "corpus", out / "run", budget=budget, sets=SETTINGS, watcher=watcher
    )
    _examine(evaluate(out / "run", out / "corpus"), console)
    console.rule("4. Move it")
    _convert(out, console)
    console.rule("Next")
    console.print(
        "litebert tokenizer train YOUR_TEXT --out tokenizer    a tokenizer of your own\n"
        "litebert prepare YOUR_TEXT --tokenizer tokenizer --out corpus\n"
        "litebert inspect corpus --arrangement albert          what the encoder will see\n"
        "litebert plan albert-mini --measure                   what training takes here\n"
        "litebert pretrain albert-mini --corpus corpus --out run --budget 30m",
        markup=False,
    )


def _prepare(out: Path, console: Console) -> None:
    """Python's manual, a topic a document, as a store."""
    from pydoc_data.topics import topics

    for name in ("tokenizer", "corpus", "corpus.partial"):
        shutil.rmtree(out / name, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    text = out / "manual.jsonl"
    text.write_text("".join(json.dumps({"text": _prose(topics[n])}) + "\n" for n in sorted(topics)))
    tokenizer = train_tokenizer([str(text)], out / "tokenizer", vocabulary=VOCABULARY)
    console.print(f"{out / 'tokenizer'}: SentencePiece, {tokenizer.vocab_size:,} pieces")
    settings = PrepareSettings(held_out=0.1)
    store = prepare([str(text)], out / "tokenizer", out / "corpus", settings, workers=1).store
    total = store.total
    console.print(
        f"{out / 'corpus'}: {total.documents:,} topics of Python's manual, {total.sentences:,} "
        f"sentences, {total.tokens:,} tokens"
    )


def _prose(topic: str) -> str:
    """A topic with each paragraph on one line, as `litebert prepare` wants it."""
    return "\n".join(" ".join(paragraph.split()) for paragraph in topic.split("\n\n"))


def _examine(report: dict[str, Any], console: Console) -> None:
    """What the model has learned, on topics it has not seen."""
    words, order = report["masked_language"], report["sentence_order"]
    console.print(
        f"held-out topics: masked-word loss {words['loss']:.2f} (guessing by frequency: "
        f"{report['unigram']:.2f}), {words['accuracy']:.0%} of {words['count']:,} masked pieces "
        f"right, {order['accuracy']:.0%} of {order['count']:,} sentence pairs right"
    )


def _convert(out: Path, console: Console) -> None:
    """Out to Google's format and back: the same numbers, to the last bit."""
    for name in ("tensorflow", "back"):
        shutil.rmtree(out / name, ignore_errors=True)
    model = Model.load(out / "run" / "model")
    console.print(f"{out / 'run' / 'model'}: opens in litebert and in transformers")
    export_model(out / "run" / "model", out / "tensorflow", "tensorflow")
    console.print(f"{out / 'tensorflow'}: Google's checkpoint")
    back = import_model(out / "tensorflow", out / "back")
    same = all(torch.equal(t, back.state_dict()[name]) for name, t in model.state_dict().items())
    assert same, "the model changed on its way to TensorFlow's format and back"
    total = sum(parameter.numel() for parameter in back.parameters())
    console.print(f"{out / 'back'}: imported again, all {total:,} parameters equal")
