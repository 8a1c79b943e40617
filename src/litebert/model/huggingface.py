"""Hugging Face's config.json and tensors <-> ours. No files here, only dictionaries.

`Contents` is a model taken apart: what a folder or a foreign checkpoint says, before or after a
`Model` exists. Our own key "litebert" in config.json remembers what Hugging Face's layout cannot
say: how layers share, whether the E->H map is real, which heads lie in the second file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from litebert.base.errors import FormatError
from litebert.model.config import EncoderConfig
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.model.tensor_names import (
    ARCHITECTURES,
    Architecture,
    TensorRow,
    architecture_for,
    encoder_rows,
    head_rows,
    known_heads,
    layout_groups,
    pooler_rows,
    tied_names,
)

FORMAT = 1
MOST_LABELS = 1_000_000
KEY = "litebert"
DENSE_HEAD = "mean_classification"  # a dense layer of sentence-transformers, in a folder of its own
_LABELLED = {
    "classification", "token_classification", DENSE_HEAD, "bi_encoder_classification"
}  # fmt: skip

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "relu": "relu",
}
_SAME_KEYS = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "type_vocab_size", "hidden_dropout_prob",
    "attention_probs_dropout_prob", "layer_norm_eps", "initializer_range", "pad_token_id",
)  # fmt: skip
_ALBERT_KEYS = ("embedding_size", "num_hidden_groups", "inner_group_num", "classifier_dropout_prob")
# transformers writes every value that differs from its defaults, and leaves out the others.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "albert": {
        "vocab_size": 30000, "embedding_size": 128, "hidden_size": 4096, "num_hidden_layers": 12,
        "num_hidden_groups": 1, "num_attention_heads": 64, "intermediate_size": 16384,
        "inner_group_num": 1, "hidden_act": "gelu_new", "classifier_dropout_prob": 0.1,
    },
    "bert": {"vocab_size": 30522, "hidden_act": "gelu"},
    "roberta": {"vocab_size": 50265, "hidden_act": "gelu", "pad_token_id": 1},
    "electra": {
        "vocab_size": 30522, "embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4,
        "intermediate_size": 1024, "hidden_act": "gelu",
    },
}  # fmt: skip


@dataclass
class Contents:
    """A model taken apart. Tensors have our names; `metadata` is config.json's unused rest."""

    config: EncoderConfig
    heads: tuple[str, ...]
    tensors: dict[str, Tensor]
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")
    metadata: dict[str, Any] = field(default_factory=dict)
    sentence_encoder: SentenceEncoderSettings | None = None

    @property
    def has_pooler(self) -> bool:
        return "pooler.dense.weight" in self.tensors


# ---------------------------------------------------------------------------- reading


def read_contents(raw: Mapping[str, Any], tensors: dict[str, Tensor], where: str) -> Contents:
    """Contents from a config.json and its tensors; `where` goes into error messages."""
    rest = dict(raw)
    own = _read_own(rest, where)
    config = _read_config(rest, own, where)
    architecture = _read_architecture(rest, config, where)
    held = {_modern(name): t for name, t in tensors.items() if t.numel()}  # not `refused_names`
    theirs = _with_prefix(held, config.family)
    theirs = {name: t for name, t in theirs.items() if not name.endswith("_ids")}  # old buffers
    config = _without_identity(config, theirs)
    heads = _heads_present(config.family, theirs, architecture)
    rows = encoder_rows(config)
    for head in heads:
        rows += head_rows(config.family, head)
    pooler = _pooler_name(config.family, architecture, theirs)
    rows += pooler_rows(pooler) if pooler else []
    ours = _take(rows, theirs, where)
    _check_tied(config.family, ours, theirs, where)
    if theirs:
        raise FormatError(f"{where}: tensor {sorted(theirs)[0]!r} has no place in this model")
    labels = _read_labels(rest, own, where)
    return Contents(config, tuple(heads), ours, labels, rest)


def _read_own(rest: dict[str, Any], where: str) -> dict[str, Any]:
    """Our own key of config.json, whose parts must be what we write."""
    own = rest.pop(KEY, {})
    kinds = {"model": dict, "labels": list, "dense_head": str}
    if not isinstance(own, dict):
        raise FormatError(f"{where}: config.json: {KEY} = {own!r}: expected a table")
    for key, kind in kinds.items():
        if not isinstance(own.get(key, kind()), kind):
            raise FormatError(f"{where}: config.json: {KEY}.{key} = {own[key]!r} is malformed")
    return own


def _read_config(rest: dict[str, Any], own: dict[str, Any], where: str) -> EncoderConfig:
    family = rest.pop("model_type", None)
    if not isinstance(family, str) or family not in ARCHITECTURES:
        raise FormatError(
            f"{where}: model_type {family!r} is not supported; known: {', '.join(ARCHITECTURES)}"
        )
    for key, plain in (("is_decoder", False), ("position_embedding_type", "absolute")):
        if rest.get(key, plain) not in (plain, None):
            raise FormatError(f"{where}: {key} = {rest[key]!r} is not supported, only {plain!r}")
    rest.update({key: v for key, v in _DEFAULTS[family].items() if key not in rest})
    values: dict[str, Any] = {"family": family}
    values |= {key: rest.pop(key) for key in _SAME_KEYS if rest.get(key) is not None}
    values |= {key: rest.pop(key) for key in _ALBERT_KEYS if key in rest}
    if family != "albert":
        values |= {"sharing": "none", "num_hidden_groups": 1, "inner_group_num": 1}
        dropout = rest.pop("classifier_dropout", None)
        values["classifier_dropout_prob"] = (
            values.get("hidden_dropout_prob", 0.1) if dropout is None else dropout
        )
        for key in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            values.setdefault(key, 0.1)
    if family in ("bert", "roberta"):
        values["embedding_size"] = values.get("hidden_size", 768)
    activation = rest.pop("hidden_act")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise FormatError(
            f"{where}: hidden_act {activation!r} is not supported; known: {', '.join(_ACTIVATIONS)}"
        )
    values["hidden_act"] = _ACTIVATIONS[activation]
    if family == "albert":
        values["projection"] = True  # transformers always has the map, also where E = H
    if own.get("format", FORMAT) != FORMAT:
        raise FormatError(
            f"{where}: model format {own['format']!r}, this version reads {FORMAT}; "
            "a newer litebert wrote it"
        )
    values |= own.get("model", {})
    return EncoderConfig.build(values, where)


def _read_architecture(
    rest: dict[str, Any], config: EncoderConfig, where: str
) -> Architecture | None:
    names = rest.pop("architectures", None) or []
    if not names:
        return None
    if not isinstance(names, list):
        raise FormatError(f"{where}: architectures = {names!r}: expected a list of one class")
    for row in ARCHITECTURES[config.family]:
        if row.name == names[0]:
            return row
    known = ", ".join(row.name for row in ARCHITECTURES[config.family])
    raise FormatError(f"{where}: architecture {names[0]!r} is not supported; known: {known}")


def _modern(name: str) -> str:
    """Names of old files: LayerNorm once had gamma and beta."""
    if "LayerNorm." in name:
        return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
            "LayerNorm.beta", "LayerNorm.bias"
        )
    return name


def _with_prefix(tensors: dict[str, Tensor], family: str) -> dict[str, Tensor]:
    """The bare encoder class writes its tensors without the family's prefix."""
    prefix = family + "."
    if any(name.startswith(prefix) for name in tensors):
        return tensors
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _without_identity(config: EncoderConfig, tensors: dict[str, Tensor]) -> EncoderConfig:
    """Where E = H: no map in Google's files, the identity in ours, a real one in some others."""
    weight, bias = (f"albert.encoder.embedding_hidden_mapping_in.{k}" for k in ("weight", "bias"))
    if config.family != "albert" or config.embedding_size != config.hidden_size:
        return config
    if weight not in tensors:
        return config.model_copy(update={"projection": None})
    if config.has_projection or bias not in tensors:  # a missing bias is reported with its name
        return config.model_copy(update={"projection": True})
    same = torch.eye(config.hidden_size), torch.zeros(config.hidden_size)
    if not all(torch.equal(tensors[n], t) for n, t in zip((weight, bias), same, strict=True)):
        return config.model_copy(update={"projection": True})  # trained elsewhere since
    del tensors[weight], tensors[bias]
    return config


def _heads_present(
    family: str, tensors: Mapping[str, Tensor], architecture: Architecture | None
) -> list[str]:
    """The heads a file has: told by their names, and where these are ambiguous by the class."""
    named = architecture.heads if architecture else ()
    heads = list(named)
    for head in known_heads(family):
        names = {row.theirs for row in head_rows(family, head)}
        taken = {row.theirs for other in heads for row in head_rows(family, other)}
        if head not in heads and not names.isdisjoint(set(tensors) - taken):
            heads.append(head)
    return heads


def _pooler_name(
    family: str, architecture: Architecture | None, tensors: Mapping[str, Tensor]
) -> str | None:
    candidates = [architecture.pooler] if architecture else []
    candidates += [row.pooler for row in ARCHITECTURES[family]]
    for name in candidates:
        if name is not None and f"{name}.weight" in tensors:
            return name
    return None


def _take(rows: list[TensorRow], theirs: dict[str, Tensor], where: str) -> dict[str, Tensor]:
    """Move tensors from their names to ours; what layers share must be the same everywhere."""
    gathered: dict[str, dict[int | None, Tensor]] = {}
    for ours, third, name in rows:
        if name not in theirs:
            raise FormatError(f"{where}: tensor {name!r} is missing")
        tensor = theirs.pop(name)
        first = gathered.setdefault(ours, {}).setdefault(third, tensor)
        if first is not tensor and not torch.equal(first, tensor):
            raise FormatError(
                f"{where}: tensor {name!r} differs from its copies in other layers, but "
                "config.json says that layers share it"
            )
    return {
        ours: parts[None] if None in parts else _joined(ours, [parts[i] for i in range(3)], where)
        for ours, parts in gathered.items()
    }


def _joined(ours: str, thirds: list[Tensor], where: str) -> Tensor:
    """Query, key and value as one tensor."""
    shapes = [tuple(tensor.shape) for tensor in thirds]
    if len(set(shapes)) > 1 or not shapes[0]:
        raise FormatError(
            f"{where}: tensor {ours!r}: its query, key and value have the shapes "
            f"{', '.join(map(str, shapes))}, expected three alike"
        )
    return torch.cat(thirds)


def _check_tied(
    family: str, ours: dict[str, Tensor], theirs: dict[str, Tensor], where: str
) -> None:
    for name, same in tied_names(family).items():
        copy = theirs.pop(name, None)
        if copy is not None and (same not in ours or not torch.equal(copy, ours[same])):
            raise FormatError(
                f"{where}: tensor {name!r} differs from the one it should repeat; "
                "a decoder of its own is not supported"
            )


def _read_labels(rest: dict[str, Any], own: dict[str, Any], where: str) -> tuple[str, ...]:
    """Names of labels: transformers' own first, for it carries ours along unchanged."""
    rest.pop("label2id", None)
    count = rest.pop("num_labels", None) or rest.pop("_num_labels", None) or 2
    named = rest.pop("id2label", None)
    if named:
        if not isinstance(named, dict) or not all(key.isdecimal() for key in named):
            raise FormatError(f"{where}: id2label = {named!r}: expected numbers and names")
        return tuple(str(named[key]) for key in sorted(named, key=int))
    if "labels" in own:
        return tuple(map(str, own["labels"]))
    if not isinstance(count, int) or not 1 <= count <= MOST_LABELS:
        raise FormatError(f"{where}: num_labels = {count!r}: expected 1 to {MOST_LABELS:,}")
    return tuple(f"LABEL_{i}" for i in range(count))


# ---------------------------------------------------------------------------- writing


def write_contents(
    contents: Contents,
) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Tensor]]:
    """config.json, the tensors of the named class, and our names for the tensors it lacks."""
    config = contents.config
    architecture = architecture_for(config.family, contents.heads)
    rows = encoder_rows(_as_written(config))
    for head in architecture.heads:
        rows += head_rows(config.family, head)
    if architecture.pooler and contents.has_pooler:
        rows += pooler_rows(architecture.pooler)
    source = _with_identity(contents)
    theirs = {row.theirs: _third(source[row.ours], row.third) for row in rows}
    written = {row.ours for row in rows}
    extra = {name: t for name, t in contents.tensors.items() if name not in written}
    if not architecture.heads:
        prefix = config.family + "."
        theirs = {name.removeprefix(prefix): tensor for name, tensor in theirs.items()}
    return _write_config(contents, architecture), theirs, extra


def _as_written(config: EncoderConfig) -> EncoderConfig:
    """Hugging Face's `albert` always has the E->H map; without one ours is the identity."""
    return config.model_copy(update={"projection": True}) if config.family == "albert" else config


def _with_identity(contents: Contents) -> dict[str, Tensor]:
    config = contents.config
    if config.has_projection or config.family != "albert":
        return contents.tensors
    width = config.hidden_size
    identity = {"weight": torch.eye(width), "bias": torch.zeros(width)}
    return contents.tensors | {f"encoder.projection.{k}": t for k, t in identity.items()}


def _third(tensor: Tensor, third: int | None) -> Tensor:
    return tensor if third is None else tensor.chunk(3)[third]


def _write_config(contents: Contents, architecture: Architecture) -> dict[str, Any]:
    config = contents.config
    raw: dict[str, Any] = {"architectures": [architecture.name], "model_type": config.family}
    raw |= {key: getattr(config, key) for key in _SAME_KEYS}
    raw["hidden_act"] = config.hidden_act
    if config.family == "albert":
        raw |= {key: getattr(config, key) for key in _ALBERT_KEYS}
        raw["num_hidden_groups"] = layout_groups(config)
    else:
        raw["classifier_dropout"] = config.classifier_dropout_prob
    if config.family == "electra":
        raw["embedding_size"] = config.embedding_size
    heads = architecture.heads or contents.heads
    if not _LABELLED.isdisjoint(heads):  # elsewhere they would change the shape
        raw["id2label"] = {str(i): label for i, label in enumerate(contents.labels)}
        raw["label2id"] = {label: i for i, label in enumerate(contents.labels)}
    remembered = config.model_dump(include={"sharing", "num_hidden_groups", "projection"})
    own = {"format": FORMAT, "model": remembered, "labels": contents.labels}
    if DENSE_HEAD in contents.heads:
        own["dense_head"] = DENSE_HEAD
    return {**contents.metadata, **raw, KEY: own}
