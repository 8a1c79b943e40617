"""The demo: the longest road there is today, in about two minutes.

Tokenizer -> corpus -> plan -> train a tiny ALBERT (masked n-grams and sentence order) -> save ->
reload -> Google's format and back. The text is the manual that ships inside Python
(`pydoc_data`), so nothing is downloaded.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from litebert.base.runtime import keep_freed_memory
from litebert.convert.transfer import export_model, import_model
from litebert.corpus.batch import Batch
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.prepare import PrepareSettings, prepare
from litebert.corpus.store import Store
from litebert.corpus.tokenizers import train_tokenizer
from litebert.model.model import Model
from litebert.objectives.masking import Masker, Masking
from litebert.planning.report import plan, table
from litebert.presets.load import load_preset
from litebert.presets.recipe import Preset

VOCABULARY = 1000
SETTINGS = [f"model.vocab_size={VOCABULARY}", "model.num_hidden_layers=2"]
BATCH, LENGTH, RATE, WARM_UP = 16, 64, 1e-3, 100
NEIGHBOURS = 5  # pieces to either side that count as a piece's company


def demo(out: Path, seconds: float) -> None:
    """Walk the road and leave its results in `out`."""
    keep_freed_memory()
    console = Console(highlight=False)
    console.rule("1. Text, tokenizer, corpus")
    store = _prepare(out, console)
    console.rule("2. Plan")
    console.print(table([plan(name) for name in ("albert-base", "bert-base")]))
    console.rule("3. Train")
    preset = load_preset("albert-tiny", SETTINGS)
    model = Model.create(preset.model, preset.heads, seed=1)
    _warm_start(model, store)
    console.print(
        f"albert-tiny on {store.total.tokens:,} tokens for {seconds:.0f} s; knowing only how often "
        f"each piece occurs gives a masked-word loss of {_unigram_loss(store):.2f}"
    )
    _train(model, store, seconds, console)
    _examine(model, store, console)
    console.rule("4. Save, reload, convert")
    _convert(model, preset, store, out, console)
    console.rule("Next")
    console.print(
        "litebert tokenizer train YOUR_TEXT --out tokenizer    a tokenizer of your own\n"
        "litebert prepare YOUR_TEXT --tokenizer tokenizer --out corpus\n"
        "litebert inspect corpus --arrangement albert          what the encoder will see\n"
        "litebert plan albert-mini --measure                   what training takes here",
        markup=False,
    )


def _prepare(out: Path, console: Console) -> Store:
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
    return store


def _prose(topic: str) -> str:
    """A topic with each paragraph on one line, as `litebert prepare` wants it."""
    return "\n".join(" ".join(paragraph.split()) for paragraph in topic.split("\n\n"))


@torch.no_grad()
def _warm_start(model: Model, store: Store) -> None:
    """Initial values that spare a small model the long plateau at the unigram level.

    Pieces begin as classical word vectors, positions as sinusoids, and each head's queries equal
    its keys, so that attention begins by comparing pieces and places instead of looking everywhere
    alike.
    """
    torch.manual_seed(1)
    config, tables = model.config, model.encoder.embeddings
    vectors = _word_vectors(store, config.embedding_size)
    known = vectors.abs().sum(1) > 0
    tables.token.weight[known] = vectors[known] * config.initializer_range / vectors[known].std()
    places = torch.arange(config.max_position_embeddings)[:, None]
    waves = places * 10000 ** (-torch.arange(0, config.embedding_size, 2) / config.embedding_size)
    tables.position.weight[:, 0::2] = waves.sin() * 1.4 * config.initializer_range
    tables.position.weight[:, 1::2] = waves.cos() * 1.4 * config.initializer_range
    attention: Any = model.encoder.attentions[0]
    query, key, _ = attention.query_key_value.weight.chunk(3)
    torch.nn.init.orthogonal_(query)
    key.copy_(query)
    assert model.encoder.projection is not None
    torch.nn.init.orthogonal_(model.encoder.projection.weight)


def _word_vectors(store: Store, size: int) -> Tensor:
    """Left singular vectors of how much more often pieces stand near each other than by chance."""
    ids = np.concatenate([store.shard(n).ids for n in range(len(store.paths))]).astype(np.int64)
    near = np.zeros((VOCABULARY, VOCABULARY))
    for distance in range(1, NEIGHBOURS + 1):
        pairs = np.bincount(ids[:-distance] * VOCABULARY + ids[distance:], minlength=near.size)
        near += pairs.reshape(near.shape) / distance
    near += near.T
    context = near.sum(0) ** 0.75  # smoothed, so that rare pieces do not stand out too much
    chance = near.sum(1, keepdims=True) * context / context.sum()
    information = np.log(np.maximum(near, 1e-9) / np.maximum(chance, 1e-9)).clip(0)
    left, strength, _ = torch.svd_lowrank(torch.from_numpy(information).float(), q=size, niter=4)
    return left * strength.sqrt()


def _unigram_loss(store: Store) -> float:
    counts = sum(
        np.bincount(store.shard(n).ids, minlength=VOCABULARY) for n in range(len(store.paths))
    )
    share = np.asarray(counts)[np.asarray(counts) > 0] / np.sum(counts)
    return float(-(share * np.log(share)).sum())


def _losses(model: Model, batch: Batch) -> tuple[Tensor, Tensor, dict[str, float]]:
    """Mean masked-word loss, mean order loss, and the counts for accuracies."""
    ids, types = torch.from_numpy(batch.ids).long(), torch.from_numpy(batch.types).long()
    state = model(ids, segments=types, lengths=batch.lengths.tolist())
    targets = torch.from_numpy(batch.targets).long()
    words, right = model.masked_language_loss(state, torch.from_numpy(batch.positions), targets)
    paired = torch.from_numpy(batch.labels >= 0)
    labels = torch.from_numpy(batch.labels).long()[paired]
    order = model.sentence_pair(state)[paired]
    ordered = torch.nn.functional.cross_entropy(order, labels, reduction="sum")
    counts = {
        "right": right.item(),
        "words": len(targets),
        "ordered": (order.argmax(-1) == labels).sum().item(),
        "pairs": len(labels),
        "loss": words.item(),
    }
    return words / len(targets), ordered / max(len(labels), 1), counts


def _train(model: Model, store: Store, seconds: float, console: Console) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    masker = Masker(Masking(), store.tokenizer)
    loader = Loader(store, LoaderSettings(length=LENGTH, batch=BATCH, by="tokens"), masker)
    model.train()
    begin, step, tokens, smooth = time.monotonic(), 0, 0, math.log(VOCABULARY)
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=seconds)
        while (spent := time.monotonic() - begin) < seconds:
            step += 1
            rate = RATE * min(step / WARM_UP, max(1 - spent / seconds, 0.0))
            optimizer.param_groups[0]["lr"] = rate
            batch = next(loader)
            words, order, _ = _losses(model, batch)
            (words + order).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            tokens += len(batch.ids)
            smooth += 0.02 * (words.item() - smooth)
            speed = tokens / max(spent, 1e-9)
            progress.update(
                bar, completed=spent,
                description=f"step {step}  loss {smooth:.2f}  {speed:,.0f} tokens/s",
            )  # fmt: skip
        progress.update(bar, completed=seconds)
    model.eval()


@torch.no_grad()
def _examine(model: Model, store: Store, console: Console) -> None:
    """One pass over the held-out topics, and one of their sentences with its masks filled in."""
    masker = Masker(Masking(mask=1.0, random=0.0), store.tokenizer)
    settings = LoaderSettings(length=LENGTH, batch=BATCH, split="held_out")
    totals: dict[str, float] = {}
    batch = None
    for batch in Loader(store, settings, masker, epochs=1):
        for name, count in _losses(model, batch)[2].items():
            totals[name] = totals.get(name, 0) + count
    assert batch is not None, "no topic was held out"
    console.print(
        f"held-out topics: masked-word loss {totals['loss'] / totals['words']:.2f}, "
        f"{totals['right'] / totals['words']:.0%} of {totals['words']:.0f} masked pieces right, "
        f"{totals['ordered'] / totals['pairs']:.0%} of {totals['pairs']:.0f} sentence pairs right"
    )
    _show_guesses(model, batch, store, console)


def _show_guesses(model: Model, batch: Batch, store: Store, console: Console) -> None:
    ids = torch.from_numpy(batch.ids).long()
    state = model(
        ids, segments=torch.from_numpy(batch.types).long(), lengths=batch.lengths.tolist()
    )
    guesses = model.masked_language(state, torch.from_numpy(batch.positions)).argmax(-1)
    first = slice(0, int(batch.lengths[0]))
    filled = batch.ids.copy()
    filled[batch.positions] = guesses.numpy()
    pieces = store.tokenizer.pieces
    hidden = "".join(pieces[i] if i != store.tokenizer.special.mask else "▁___"
                     for i in batch.ids[first][batch.inside[first]])  # fmt: skip
    console.print(f"hidden:  {hidden.replace('▁', ' ').strip()}", markup=False)
    decoded = store.tokenizer.decode(filled[first].tolist())
    console.print(f"guessed: {decoded}", markup=False)


def _convert(model: Model, preset: Preset, store: Store, out: Path, console: Console) -> None:
    """Out to Google's format and back: the same numbers, to the last bit."""
    for name in ("model", "tensorflow", "back"):
        shutil.rmtree(out / name, ignore_errors=True)
    model.save(out / "model", tokenizer=store.tokenizer)
    console.print(f"{out / 'model'}: opens in litebert and in transformers, tokenizer included")
    export_model(out / "model", out / "tensorflow", "tensorflow")
    console.print(f"{out / 'tensorflow'}: Google's checkpoint")
    back = import_model(out / "tensorflow", out / "back")
    same = all(torch.equal(t, back.state_dict()[name]) for name, t in model.state_dict().items())
    assert same, "the model changed on its way to TensorFlow's format and back"
    total = plan("albert-tiny", SETTINGS)["parameters"]["with_heads"]
    assert total == sum(p.numel() for p in back.parameters())
    console.print(f"{out / 'back'}: imported again, all {total:,} parameters equal")
