"""Google's TensorFlow checkpoints of ALBERT and BERT, to and from Hugging Face names.

What the table of names (google_names.py) does not know is an error, never skipped in silence: only
the state of Google's optimizers is left behind.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import torch

from litebert.base.errors import FileError, FormatError
from litebert.base.files import read_json, write_json
from litebert.convert.bundle import BundleEntry, list_variables, read_variable, write_bundle
from litebert.convert.google_config import architecture, from_google, to_google
from litebert.convert.google_names import FAMILIES, MAPPING, MARKS, rename, renaming_rules
from litebert.model.folder import check_finite

# The state of training, which a model does not need. Slots lie beside their variable.
SKIPPED = re.compile(
    r".*/(adam_[mv]|(AdamWeightDecayOptimizer|LAMBOptimizer|LAMB|Adam)(_\d+)?)"
    r"|(.*/)?(global_step|beta[12]_power)|signal_early_stopping/.*"
)


def read_checkpoint(
    path: Path, *, regression: bool = False
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """A folder, a prefix or an .index file as a Hugging Face config and float32 tensors.

    Google names RACE's scorer and STS-B's alike: a classifier with one output is taken for
    multiple choice unless `regression` is set. The tensors of the encoder always carry their
    "albert." or "bert." in front, whatever class `architectures` names.
    """
    prefix = _find_prefix(Path(path))
    entries = _model_variables(prefix)
    family = _family(prefix, entries)
    targets = _targets(prefix, family, entries)
    settings = _find_config(prefix.parent, family)
    config = from_google(settings, read_json(settings), family)
    tensors = {
        target: _tensor(prefix, entries[name], transpose)
        for target, (name, transpose) in targets.items()
    }
    return config | architecture(family, tensors, regression), tensors


def write_checkpoint(
    folder: Path, config: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> None:
    """Write a Hugging Face albert or bert as model.ckpt.* and Google's config into a folder."""
    family = str(config.get("model_type"))
    if family not in FAMILIES:
        raise FormatError(
            f"model_type {family!r}: Google's TensorFlow code has only albert and bert; "
            "export this model to another format"
        )
    google = to_google(config, family)
    rules = renaming_rules(family, to_tensorflow=True)
    variables = {}
    for name, tensor in _untied(family, _without_identity(config, _full_names(family, tensors))):
        found = rename(name, rules)
        if found is None:
            raise FormatError(
                f"tensor {name!r}: Google's {family} code has nothing of that name, so a "
                "TensorFlow checkpoint cannot hold it; export the model without it"
            )
        target, transpose = found
        values = tensor.detach().to("cpu", torch.float32)
        variables[target] = (values.t() if transpose else values).numpy()
    write_bundle(Path(folder) / "model.ckpt", variables)
    write_json(Path(folder) / f"{family}_config.json", google)


# ---- finding the files


def _find_prefix(path: Path) -> Path:
    if not os.path.isdir(path):
        return path.with_name(re.sub(r"\.(index|data-\d+-of-\d+)$", "", path.name))
    names = sorted(file.name.removesuffix(".index") for file in path.glob("*.index"))
    latest = _latest(path / "checkpoint")
    if latest in names:
        return path / latest
    if len(names) != 1:
        found = ", ".join(names) or "none (a V1 checkpoint, one file without an index, is not read)"
        raise FileError(f"{path}: needs one checkpoint with an .index file, found {found}; name it")
    return path / names[0]


def _latest(path: Path) -> str:
    """The checkpoint that TensorFlow's own note calls the latest; its folder may be long gone."""
    text = path.read_text(encoding="utf-8", errors="replace") if os.path.isfile(path) else ""
    found = re.search(r'^model_checkpoint_path: "([^"\n]*)"', text, re.MULTILINE)
    return re.split(r"[/\\]", found.group(1))[-1] if found else ""


def _find_config(folder: Path, family: str) -> Path:
    for name in (f"{family}_config.json", "albert_config.json", "bert_config.json"):
        if os.path.isfile(folder / name):
            return folder / name
    found = sorted(folder.glob("*config*.json"))
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise FileError(
            f"{folder}: needs {family}_config.json beside the checkpoint, found {names}; "
            "copy Google's config there under that name"
        )
    return found[0]


# ---- variables and tensors


def _model_variables(prefix: Path) -> dict[str, BundleEntry]:
    """The variables of the model by their name outside TF-Hub, which puts "module/" before it."""
    entries = {}
    for name, entry in list_variables(prefix).items():
        plain = re.sub(r"^(module/)+", "", name)
        if plain in entries:
            raise FormatError(f"{prefix}: holds {plain!r} twice, with and without 'module/'")
        if not SKIPPED.fullmatch(plain):
            entries[plain] = entry
    return entries


def _family(prefix: Path, names: dict[str, BundleEntry]) -> str:
    for family, mark in MARKS.items():
        if any(name.startswith(mark) for name in names):
            return family
    raise FormatError(
        f"{prefix}: holds neither {MARKS['albert']}* nor {MARKS['bert']}*, so it is not one of "
        "Google's ALBERT or BERT checkpoints (those of TensorFlow 2's Keras are not read)"
    )


def _targets(
    prefix: Path, family: str, names: dict[str, BundleEntry]
) -> dict[str, tuple[str, bool]]:
    """Hugging Face name -> (TensorFlow name, whether to transpose)."""
    targets = {}
    rules = renaming_rules(family, to_tensorflow=False)
    for name in names:
        if "layer_normalization" in name:
            raise FormatError(
                f"{prefix}: variable {name!r} is a layer normalization of TensorFlow 2, which "
                "gives every layer its own instead of sharing it (google-research/albert#241), "
                "and is not read; train under TensorFlow 1.15, where it is called LayerNorm"
            )
        found = rename(name, rules)
        if found is None or found[0] in targets:
            raise FormatError(
                f"{prefix}: variable {name!r} is not part of Google's {family}, so this is "
                "another model; save a checkpoint without it"
            )
        targets[found[0]] = (name, found[1])
    return targets


def _tensor(prefix: Path, entry: BundleEntry, transpose: bool) -> torch.Tensor:
    if transpose and len(entry.shape) != 2:
        raise FormatError(f"{prefix}: kernel {entry.name!r} has shape {entry.shape}, not 2 sizes")
    values = torch.from_numpy(read_variable(prefix, entry)).to(torch.float32)
    check_finite(values, f"{prefix}: variable {entry.name!r}")
    return values.t().contiguous() if transpose else values


def _full_names(family: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A bare AlbertModel or BertModel is saved without its own name; buffers are no weights."""
    parts = ("embeddings.", "encoder.", "pooler.")
    return {
        f"{family}.{name}" if name.startswith(parts) else name: tensor
        for name, tensor in tensors.items()
        if not name.endswith(("embeddings.position_ids", "embeddings.token_type_ids"))
    }


def _untied(family: str, tensors: dict[str, torch.Tensor]) -> list[tuple[str, torch.Tensor]]:
    """Drop the decoder's second name for the word embeddings and for the bias of the MLM head."""
    head = "predictions" if family == "albert" else "cls.predictions"
    ties = {
        f"{head}.decoder.weight": f"{family}.embeddings.word_embeddings.weight",
        f"{head}.decoder.bias": f"{head}.bias",
    }
    kept = {name: tensor for name, tensor in tensors.items() if name not in ties}
    for name in ties.keys() & tensors.keys():
        if not torch.equal(kept.setdefault(ties[name], tensors[name]), tensors[name]):
            raise FormatError(
                f"tensor {name!r} differs from {ties[name]!r}, which Google's code uses in its "
                "place; only a model that ties them can be written"
            )
    return list(kept.items())


def _without_identity(
    config: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Google's ALBERT has no map from embeddings to hidden states where their sizes agree."""
    weight, bias = tensors.get(f"{MAPPING}.weight"), tensors.get(f"{MAPPING}.bias")
    if weight is None or config.get("embedding_size") != config.get("hidden_size"):
        return tensors
    identity = torch.eye(*weight.shape, dtype=weight.dtype, device=weight.device)
    if not torch.equal(weight, identity) or (bias is not None and bias.any()):
        raise FormatError(
            f"tensor '{MAPPING}.weight': at embedding_size = hidden_size = {weight.shape[0]} "
            "Google's ALBERT has no such layer, and this one is not the identity, so the model "
            "cannot be written as a TensorFlow checkpoint"
        )
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(MAPPING)}
