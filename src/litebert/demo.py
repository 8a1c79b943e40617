"""The demo: the longest road there is today, in about two minutes.

Plan -> train a tiny ALBERT on masked bytes -> save -> reload -> Google's format and back. The text
is the manual that ships inside Python (`pydoc_data`), read as bytes: no download, no tokenizer.
"""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from litebert.base.runtime import keep_freed_memory
from litebert.convert.transfer import export_model, import_model
from litebert.model.model import Model
from litebert.model.presets import Preset, load_preset
from litebert.planning.report import plan, table

CLS, SEP, MASK, FIRST_BYTE = 2, 3, 4, 5
SETTINGS = [f"model.vocab_size={FIRST_BYTE + 256}", "model.num_hidden_layers=2"]
BATCH, LENGTH, MASKED, RATE, WARM_UP = 16, 64, 0.15, 1e-3, 100
SENTENCE = "The value of the expression is returned to the caller of the function."


def demo(out: Path, seconds: float) -> None:
    """Walk the road and leave its results in `out`."""
    keep_freed_memory()
    console = Console()
    console.rule("1. Plan")
    console.print(table([plan(name) for name in ("albert-base", "bert-base")]))
    console.rule("2. Train")
    text = _manual()
    preset = load_preset("albert-tiny", SETTINGS)
    model = Model.create(preset.model, preset.heads, seed=1)
    _warm_start(model)
    console.print(
        f"albert-tiny on {len(text):,} bytes of Python's manual, {seconds:.0f} s; knowing only how "
        f"often each byte occurs gives a loss of {_unigram_loss(text):.2f}"
    )
    loss, accuracy = _train(model, text, seconds, console)
    console.print(f"masked bytes: loss {loss:.2f}, {accuracy:.0%} right")
    _guess(model, console)
    console.rule("3. Save, reload, convert")
    _convert(model, preset, out, console)
    console.rule("Next")
    console.print(
        "litebert presets                       the shipped encoders\n"
        "litebert plan albert-mini --measure    what training takes on this machine\n"
        "litebert import FOLDER MODEL           bring in a Hugging Face or TensorFlow model"
    )


def _manual() -> Tensor:
    from pydoc_data.topics import topics

    joined = "\n".join(topics[name] for name in sorted(topics))
    return torch.frombuffer(bytearray(joined.encode("utf-8")), dtype=torch.uint8).long()


@torch.no_grad()
def _warm_start(model: Model) -> None:
    """Initial values that spare a small model the long plateau at the unigram level.

    Positions begin as sinusoids and each head's queries equal its keys, so that attention begins
    by comparing tokens and places instead of looking everywhere alike.
    """
    torch.manual_seed(1)
    config, tables = model.config, model.encoder.embeddings
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


def _unigram_loss(text: Tensor) -> float:
    share = text.bincount().float() / len(text)
    share = share[share > 0]
    return -(share * share.log()).sum().item()


def _batch(text: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Windows of text between [CLS] and [SEP], the flat masked positions, and what was there."""
    width = LENGTH - 2
    starts = torch.randint(len(text) - width, (BATCH, 1), generator=generator)
    ids = text[starts + torch.arange(width)] + FIRST_BYTE
    ids = torch.cat([torch.full((BATCH, 1), CLS), ids, torch.full((BATCH, 1), SEP)], 1)
    chosen = torch.rand(ids.shape, generator=generator) < MASKED
    chosen[:, [0, -1]] = False
    positions = chosen.flatten().nonzero().squeeze(1)
    targets = ids.flatten()[positions]
    return ids.masked_fill(chosen, MASK), positions, targets


def _train(model: Model, text: Tensor, seconds: float, console: Console) -> tuple[float, float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    generator = torch.Generator().manual_seed(1)
    model.train()
    begin, step, smooth_loss, smooth_right = time.monotonic(), 0, math.log(256), 0.0
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=seconds)
        while (spent := time.monotonic() - begin) < seconds:
            step += 1
            rate = RATE * min(step / WARM_UP, max(1 - spent / seconds, 0.0))
            optimizer.param_groups[0]["lr"] = rate
            ids, positions, targets = _batch(text, generator)
            loss, right = model.masked_language_loss(model(ids), positions, targets)
            (loss / len(targets)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            smooth_loss += 0.05 * (loss.item() / len(targets) - smooth_loss)
            smooth_right += 0.05 * (right.item() / len(targets) - smooth_right)
            speed = step * BATCH * LENGTH / max(spent, 1e-9)
            progress.update(
                bar, completed=spent,
                description=f"step {step}  loss {smooth_loss:.2f}  {speed:,.0f} tokens/s",
            )  # fmt: skip
        progress.update(bar, completed=seconds)
    model.eval()
    return smooth_loss, smooth_right


@torch.no_grad()
def _guess(model: Model, console: Console) -> None:
    """Hide every sixth letter of a sentence and show the model's guesses."""
    letters = torch.tensor(list(SENTENCE.encode("ascii")))
    hidden = torch.arange(3, len(letters), 6)
    ids = torch.cat([torch.tensor([CLS]), letters + FIRST_BYTE, torch.tensor([SEP])])
    ids = ids[:LENGTH]
    hidden = hidden[hidden < LENGTH - 2]
    ids[hidden + 1] = MASK
    logits = model.masked_language(model(ids[None]), hidden + 1)
    guesses = logits[:, FIRST_BYTE:].argmax(-1)
    shown, filled = list(SENTENCE[: LENGTH - 2]), list(SENTENCE[: LENGTH - 2])
    for place, guess in zip(hidden.tolist(), guesses.tolist(), strict=True):
        shown[place], filled[place] = "_", chr(guess)
    right = sum(SENTENCE[place] == filled[place] for place in hidden.tolist())
    console.print(
        f"hidden:  {''.join(shown)}\nguessed: {''.join(filled)}  ({right} of {len(hidden)})"
    )


def _convert(model: Model, preset: Preset, out: Path, console: Console) -> None:
    """Out to Google's format and back: the same numbers, to the last bit."""
    for name in ("model", "tensorflow", "back"):
        shutil.rmtree(out / name, ignore_errors=True)
    model.save(out / "model")
    console.print(f"{out / 'model'}: opens in litebert and in transformers")
    export_model(out / "model", out / "tensorflow", "tensorflow")
    console.print(f"{out / 'tensorflow'}: Google's checkpoint")
    back = import_model(out / "tensorflow", out / "back")
    same = all(torch.equal(t, back.state_dict()[name]) for name, t in model.state_dict().items())
    assert same, "the model changed on its way to TensorFlow's format and back"
    total = plan("albert-tiny", SETTINGS)["parameters"]["with_heads"]
    assert total == sum(p.numel() for p in back.parameters())
    console.print(f"{out / 'back'}: imported again, all {total:,} parameters equal")
