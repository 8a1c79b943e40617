"""What a run needs, from its preset and its corpus: settings that fit, models, memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.optim import Optimizer

from litebert.base.errors import LitebertError, SettingsError
from litebert.base.randomness import Purpose, random_bits
from litebert.base.runtime import memory_free, resolve_precision
from litebert.base.settings import Tree, merge
from litebert.configs.schema import Preset
from litebert.corpus.sampling.input_formats import input_format
from litebert.corpus.statistics import token_counts
from litebert.corpus.store import Store
from litebert.model.config import EncoderConfig
from litebert.model.folder import find_model_folder
from litebert.model.model import Model
from litebert.objectives.distillation import Distillation
from litebert.objectives.learner import Learner
from litebert.objectives.masking import Masker
from litebert.objectives.registry import build_objectives
from litebert.planning.memory import peak_memory
from litebert.text.tokenizer import load_tokenizer
from litebert.train.checkpoint import Say
from litebert.train.distributed import DistributedGroup
from litebert.train.initialization.corpus import initialize_from_corpus
from litebert.train.run_folder import GENERATOR
from litebert.train.stages import resolve_stages
from litebert.train.step import TrainingStep

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
    paired = input_format(preset.data.input_format).form == "pair"
    if paired and store.tokenizer.kind != "bpe" and preset.model.type_vocab_size < 2:
        raise SettingsError(
            f"data.input_format {preset.data.input_format!r} makes pairs of segments, which a "
            "model with type_vocab_size 1 cannot tell apart; choose 'full-sentences', or "
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
    if preset.generator is not None and os.path.isdir(folder / GENERATOR):
        generator = Model.load(folder / GENERATOR)
    elif "replaced_token" in preset.objectives:
        say(f"{folder}: a new generator is trained, as there is none")
    folder = find_model_folder(folder)
    model = Model.load(folder)
    _check_vocabulary(folder, model, store, say)
    return model, generator


def _check_vocabulary(folder: Path, model: Model, store: Store, say: Say) -> None:
    """The corpus must be in the model's own tokens."""
    try:
        tokenizer = load_tokenizer(folder)
    except LitebertError as error:
        say(f"{folder}: its tokenizer cannot be compared with the corpus's ({error})")
    else:
        store.require_tokenizer(tokenizer, str(folder))
    if store.info.vocab_size > model.config.vocab_size:
        raise SettingsError(
            f"{store.folders[0]}: prepared with vocab_size {store.info.vocab_size}, "
            f"{folder} has {model.config.vocab_size}; run `litebert prepare` again with the "
            "model's tokenizer"
        )


def build_learner(
    preset: Preset, device: torch.device, start: tuple[Model | None, Model | None], say: Say,
    taught: Sequence[Distillation] = (),
) -> Learner:  # fmt: skip
    """Fresh models, with the weights of the given ones where these have them.

    `taught` are the objectives that learn from a teacher, beside the preset's others.
    """
    model = _create(preset.model, preset.heads, preset.seed, device, start[0], say)
    generator = None
    if "replaced_token" in preset.objectives:
        assert preset.generator is not None
        heads = ("masked_lm",)
        generator = _create(preset.generator, heads, preset.seed + 1, device, start[1], say)
    objectives = build_objectives(preset.objectives, preset.discriminator_weight)
    learner = Learner(model, [*objectives, *taught], generator)
    for each in learner.models():
        each.encoder.checkpointing = preset.activation_checkpointing
    return learner.train()


def _create(
    config: EncoderConfig, heads: tuple[str, ...], seed: int, device: torch.device,
    start: Model | None, say: Say,
) -> Model:  # fmt: skip
    name = int(random_bits(Purpose.WEIGHTS, seed)) >> 1
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


def build_step(
    preset: Preset, learner: Learner, optimizer: Optimizer, group: DistributedGroup
) -> TrainingStep:
    """The training step that a preset describes."""
    return TrainingStep(
        learner, optimizer, group, gradient_clipping=preset.optimizer.gradient_clipping,
        micro_batch_tokens=preset.data.micro_batch_tokens, seed=preset.seed,
        precision=resolve_precision(preset.precision, group.device),
    )  # fmt: skip


def check_memory(preset: Preset, device: torch.device) -> None:
    """Refuse a batch that cannot fit, and say which would."""
    free = memory_free(device)
    if free is None:
        return
    stages = resolve_stages(preset)
    length = max(stage.loading.max_length for stage in stages)

    def need(tokens: int) -> int:
        count = max(tokens // length, 1)
        return peak_memory(
            preset, count, length, preset.precision, preset.activation_checkpointing
        )["total"]

    largest = max(stage.loading.max_length * stage.loading.batch_size for stage in stages)
    tokens = min(preset.data.micro_batch_tokens, largest)
    if need(tokens) <= free:
        return
    wanted, micro_batch = need(tokens), tokens
    while tokens > length and need(tokens) > free:
        tokens //= 2
    fits = need(tokens) <= free
    advice = (
        f"--set data.micro_batch_tokens={tokens} needs {need(tokens) / 1e9:.1f} GB and gives the "
        "same result"
        if fits
        else "choose a smaller preset, or --set activation_checkpointing=true"
    )
    raise SettingsError(
        f"micro-batches of {micro_batch:,} tokens need about {wanted / 1e9:.1f} GB and "
        f"{free / 1e9:.1f} GB are free; {advice}"
    )


def save_untrained(preset: Preset, corpus: Path, out: Path) -> None:
    """Write the model of a preset, initialized as it says, before its first step."""
    store = Store([corpus])
    fitted = fit_to_corpus(preset, store)
    learner = build_learner(fitted, torch.device("cpu"), (None, None), lambda _: None)
    if fitted.initialization != "truncated_normal":
        counts = token_counts(store)
        masked_counts = Masker(fitted.masking, store.tokenizer, counts).masked_counts(counts)
        order = fitted.initialization == "corpus"
        initialize_from_corpus(learner, store, counts, masked_counts, order=order)
    learner.model.save(out, overwrite=True, tokenizer=store.tokenizer)
