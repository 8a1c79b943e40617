"""What a run needs, from its preset and its corpus: settings that fit, models, memory."""

from __future__ import annotations

from pathlib import Path

import torch

from litebert.base.config import Tree, merge
from litebert.base.errors import LitebertError, SettingsError
from litebert.base.runtime import memory_free
from litebert.corpus.arrange import arrangement
from litebert.corpus.chance import For, draw
from litebert.corpus.store import Store
from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.objectives.registry import objectives
from litebert.planning.memory import peak_memory
from litebert.presets.recipe import Preset
from litebert.text.tokenizer import load_tokenizer
from litebert.train.checkpoint import Say
from litebert.train.run import GENERATOR, model_folder
from litebert.train.stream import legs

EMBEDDED = (
    "vocab_size", "embedding_size", "max_position_embeddings", "type_vocab_size", "pad_token_id",
)  # fmt: skip


def fit_to_corpus(preset: Preset, store: Store) -> Preset:
    """The preset with the corpus's vocabulary and padding, whatever it was written for."""
    tokenizer = store.tokenizer
    sizes = {"vocab_size": tokenizer.vocab_size, "pad_token_id": tokenizer.special.pad}
    tree = preset.model_dump()
    for name in ("model", "generator"):
        if tree[name] is not None:
            tree[name] = merge(tree[name], sizes)
    fitted = Preset.build(tree, "preset")
    check_segments(fitted, store)
    return fitted


def check_segments(preset: Preset, store: Store) -> None:
    """Refuse pairs of segments for a model that cannot tell segments apart."""
    paired = arrangement(preset.data.arrangement).form == "pair"
    if paired and store.tokenizer.kind != "bytes" and preset.model.type_vocab_size < 2:
        raise SettingsError(
            f"data.arrangement {preset.data.arrangement!r} makes pairs of segments, which a model "
            "with type_vocab_size 1 cannot tell apart; choose 'full-sentences', or "
            "--set model.type_vocab_size=2"
        )


def fit_to_models(preset: Preset, changes: Tree, model: Model, generator: Model | None) -> Preset:
    """The preset with the shape of models that are there, and what the user changed in it."""
    shapes = {"model": model, "generator": generator}
    tree = preset.model_dump()
    for name, there in shapes.items():
        if there is not None:
            tree[name] = merge(there.config.model_dump(), changes.get(name) or {})
    if generator is None and tree["generator"] is not None:  # a new one, for the same embeddings
        tree["generator"] |= {name: tree["model"][name] for name in EMBEDDED}
    return Preset.build(tree, "preset")


def open_start(folder: Path, preset: Preset, store: Store, say: Say) -> tuple[Model, Model | None]:
    """The models of a folder to go on from, ours or Hugging Face's."""
    generator = None
    if preset.generator is not None and (folder / GENERATOR).is_dir():
        generator = Model.load(folder / GENERATOR)
    elif "replaced_token" in preset.heads:
        say(f"{folder}: a new generator is trained, as there is none")
    folder = model_folder(folder)
    model = Model.load(folder)
    _check_vocabulary(folder, model, store, say)
    return model, generator


def _check_vocabulary(folder: Path, model: Model, store: Store, say: Say) -> None:
    """The corpus must be in the model's own pieces."""
    try:
        tokenizer = load_tokenizer(folder)
    except LitebertError as error:
        say(f"{folder}: its tokenizer cannot be compared with the corpus's ({error})")
    else:
        store.require_tokenizer(tokenizer, str(folder))
    if store.info.vocabulary > model.config.vocab_size:
        raise SettingsError(
            f"{store.folders[0]}: prepared with vocabulary {store.info.vocabulary}, "
            f"{folder} has {model.config.vocab_size}; run `litebert prepare` again with the "
            "model's tokenizer"
        )


def build_learner(
    preset: Preset, device: torch.device, start: tuple[Model | None, Model | None], say: Say
) -> Learner:
    """Fresh models, with the weights of the given ones where these have them."""
    model = _create(preset.model, preset.heads, preset.seed, device, start[0], say)
    generator = None
    if "replaced_token" in preset.heads:
        assert preset.generator is not None
        heads = ("masked_language",)
        generator = _create(preset.generator, heads, preset.seed + 1, device, start[1], say)
    asked = objectives(preset.heads, preset.data.arrangement, preset.detection_weight)
    learner = Learner(model, asked, generator)
    for each in learner.models():
        each.encoder.checkpointing = preset.activation_checkpointing
    return learner.train()


def _create(
    config: EncoderConfig, heads: tuple[str, ...], seed: int, device: torch.device,
    start: Model | None, say: Say,
) -> Model:  # fmt: skip
    name = int(draw(For.WEIGHTS, seed)) >> 1
    model = Model.create(config, heads, seed=name, device=device)
    if start is not None:
        there, here = start.state_dict(), model.state_dict()
        for key in [key for key in here if key.startswith("encoder.") or key in there]:
            if key not in there or there[key].shape != here[key].shape:
                raise SettingsError(
                    f"the model to start from does not fit these settings: {key!r} has shape "
                    f"{tuple(there[key].shape) if key in there else 'none'}, "
                    f"{tuple(here[key].shape)} wanted; take the model.… settings back"
                )
        missing = model.load_state_dict(there, strict=False).missing_keys
        fresh = sorted({".".join(key.split(".")[:2]) for key in missing})
        if fresh:
            say(f"new, as the model to start from has none: {', '.join(fresh)}")
    return model


def check_memory(preset: Preset, device: torch.device) -> None:
    """Refuse a batch that cannot fit, and say which would."""
    free = memory_free(device)
    if free is None:
        return
    length = max(leg.loading.length for leg in legs(preset))

    def need(tokens: int) -> int:
        count = max(tokens // length, 1)
        return peak_memory(
            preset, count, length, preset.precision, preset.activation_checkpointing
        )["total"]

    largest = max(leg.loading.length * leg.loading.batch for leg in legs(preset))
    tokens = min(preset.data.at_once, largest)
    if need(tokens) <= free:
        return
    wanted, asked = need(tokens), tokens
    while tokens > length and need(tokens) > free:
        tokens //= 2
    fits = need(tokens) <= free
    advice = (
        f"--set data.at_once={tokens} needs {need(tokens) / 1e9:.1f} GB and gives the same result"
        if fits
        else "choose a smaller preset, or --set activation_checkpointing=true"
    )
    raise SettingsError(
        f"{asked:,} tokens at once need about {wanted / 1e9:.1f} GB and {free / 1e9:.1f} GB are "
        f"free; {advice}"
    )
