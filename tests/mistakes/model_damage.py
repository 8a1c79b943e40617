"""What can be wrong with a model folder: a change of its files, and the words that tell of it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from litebert.base.files import LARGEST_JSON

KEY = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.key.weight"

Change = Callable[[Path], None]


def settings(**changes: Any) -> Change:
    """Other values in config.json."""

    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


def content(name: str, data: bytes) -> Change:
    """Other bytes in a file."""
    return lambda folder: (folder / name).write_bytes(data) and None


def gone(name: str) -> Change:
    """A file less."""
    return lambda folder: (folder / name).unlink()


def tensors(alter: Callable[[dict[str, Tensor]], Mapping[str, Tensor]]) -> Change:
    """Other tensors in the weights."""

    def change(folder: Path) -> None:
        file = folder / "model.safetensors"
        save_file(dict(alter(load_file(file))), file, metadata={"format": "pt"})

    return change


def index(weight_map: Any) -> Change:
    """An index instead of the weights, which move outside of the folder."""

    def change(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder.parent / "evil.safetensors")
        text = json.dumps({"metadata": {}, "weight_map": weight_map})
        (folder / "model.safetensors.index.json").write_text(text)

    return change


def cut(keep: int | float) -> Change:
    """Weights that end early: after so many bytes, or so large a share."""

    def change(folder: Path) -> None:
        file = folder / "model.safetensors"
        data = file.read_bytes()
        size = int(keep * len(data)) if isinstance(keep, float) else keep
        file.write_bytes(data[:size])

    return change


def huge(folder: Path) -> None:
    with (folder / "config.json").open("wb") as stream:
        stream.truncate(LARGEST_JSON + 1)


def pickle_only(name: str) -> Change:
    """Weights as a pickle and no others."""

    def change(folder: Path) -> None:
        torch.save(load_file(folder / "model.safetensors"), folder / "weights")
        (folder / "model.safetensors").unlink()
        (folder / "weights").rename(folder / name)

    return change


DAMAGES: dict[str, tuple[Change, list[str]]] = {
    "no config": (gone("config.json"), ["config.json: no such file"]),
    "empty config": (content("config.json", b"\n"), ["config.json", "not readable as JSON"]),
    "half a config": (content("config.json", b'{"a": '), ["config.json", "not readable as JSON"]),
    "config not text": (content("config.json", b"\xff\xff"), ["config.json"]),
    "config a list": (content("config.json", b"[1, 2]"), ["config.json", "JSON list"]),
    "config deep": (content("config.json", b"[" * 100_000), ["config.json", "not readable"]),
    "config huge": (huge, ["config.json", "67,108,865 bytes", "too large"]),
    "config of many digits": (
        content("config.json", b'{"vocab_size": ' + b"9" * 5000 + b"}"), ["config.json"]
    ),
    "gpt2": (
        settings(model_type="gpt2", architectures=["GPT2LMHeadModel"]), ["'gpt2'", "known: albert"]
    ),
    "no model type": (settings(model_type=None), ["model_type None"]),
    "model type a list": (settings(model_type=["albert"]), ["model_type", "['albert']"]),
    "a causal model": (
        settings(architectures=["AlbertForCausalLM"]), ["'AlbertForCausalLM'", "AlbertForMaskedLM"]
    ),
    "architectures a number": (settings(architectures=5), ["architectures", "5"]),
    "architectures a table": (settings(architectures={"a": 1}), ["architectures"]),
    "a decoder": (settings(is_decoder=True), ["is_decoder = True"]),
    "relative positions": (
        settings(position_embedding_type="relative_key"),
        ["position_embedding_type", "relative_key"],
    ),
    "unknown activation": (settings(hidden_act="swish"), ["hidden_act", "'swish'", "gelu_new"]),
    "activation a list": (settings(hidden_act=["gelu"]), ["hidden_act", "['gelu']"]),
    "size a word": (settings(hidden_size="wide"), ["hidden_size = 'wide'"]),
    "heads that do not divide": (
        settings(num_attention_heads=5), ["hidden_size 32", "num_attention_heads 5"]
    ),
    "no layers": (settings(num_hidden_layers=0), ["num_hidden_layers = 0"]),
    "labels a number": (settings(id2label=5), ["id2label"]),
    "labels without numbers": (settings(id2label={"a": "x"}), ["id2label", "'a'"]),
    "label count a word": (settings(num_labels="many"), ["num_labels", "'many'"]),
    "our key a number": (settings(litebert=5), ["litebert", "5"]),
    "our model a number": (settings(litebert={"model": 5}), ["litebert", "5"]),
    "our labels a number": (settings(litebert={"labels": 5}), ["litebert", "5"]),
    "our format from the future": (settings(litebert={"format": 99}), ["format 99", "newer"]),
    "our model with an unknown key": (
        settings(litebert={"model": {"sharng": "all"}}), ["'sharng'", "did you mean 'sharing'?"]
    ),
    "smaller vocabulary": (settings(vocab_size=98), ["(99, 16)", "(98, 16)", "vocab_size"]),
    "larger vocabulary": (settings(vocab_size=30000), ["(99, 16)", "(30000, 16)", "vocab_size"]),
    "vocabulary beyond memory": (settings(vocab_size=10**18), ["vocab_size", str(10**18)]),
    "other width": (settings(hidden_size=64), ["(64, "]),
    "no weights": (gone("model.safetensors"), ["model.safetensors: no such file"]),
    "weights empty": (cut(0), ["model.safetensors: not a whole"]),
    "weights of 4 bytes": (cut(4), ["model.safetensors: not a whole"]),
    "weights of 100 bytes": (cut(100), ["model.safetensors: not a whole"]),
    "half the weights": (cut(0.5), ["model.safetensors: not a whole"]),
    "weights but for the end": (cut(0.9999), ["model.safetensors: not a whole"]),
    "a pickle in disguise": (
        content("model.safetensors", pickle.dumps({"a": [1.0] * 100})),
        ["model.safetensors", "convert"],
    ),
    "a pickle of torch in disguise": (
        pickle_only("model.safetensors"), ["model.safetensors", "convert"]
    ),
    "a pickle": (
        pickle_only("pytorch_model.bin"), ["pytorch_model.bin", "refused", "save_pretrained"]
    ),
    "a pickle in parts": (
        pickle_only("pytorch_model-00001-of-00002.bin"),
        ["pytorch_model-00001-of-00002.bin", "refused", "save_pretrained"],
    ),
    "a tensor missing": (
        tensors(lambda t: {n: x for n, x in t.items() if n != KEY}), [KEY, "is missing"]
    ),
    "a bias missing": (
        tensors(lambda t: {n: x for n, x in t.items() if n != "albert.pooler.bias"}),
        ["albert.pooler.bias", "is missing"],
    ),
    "a tensor too many": (
        tensors(lambda t: t | {"albert.extra.weight": torch.ones(2)}),
        ["'albert.extra.weight'", "no place"],
    ),
    "no known tensor": (tensors(lambda t: {"a": torch.ones(1)}), ["is missing"]),
    "a key of other shape": (tensors(lambda t: t | {KEY: torch.ones(32, 16)}), ["(32, 16)"]),
    "a key without shape": (tensors(lambda t: t | {KEY: torch.tensor(1.0)}), ["key"]),
    "a bias of other shape": (
        tensors(lambda t: t | {"albert.pooler.bias": torch.ones(31)}), ["pooler", "(31,)", "(32,)"]
    ),
    "integers for weights": (
        tensors(lambda t: t | {"albert.pooler.bias": torch.ones(32, dtype=torch.int64)}),
        ["pooler.bias", "int64"],
    ),
    "complex weights": (
        tensors(lambda t: t | {"albert.pooler.bias": torch.ones(32, dtype=torch.complex64)}),
        ["pooler.bias", "complex64"],
    ),
    "an untied decoder": (
        tensors(lambda t: t | {"predictions.decoder.weight": torch.ones(99, 16)}),
        ["'predictions.decoder.weight'", "decoder of its own"],
    ),
    "an untied bias": (
        tensors(lambda t: t | {"predictions.decoder.bias": torch.ones(99)}),
        ["'predictions.decoder.bias'", "decoder of its own"],
    ),
    "an index to outside": (
        index({KEY: "../evil.safetensors"}), ["index.json", "outside", "../evil.safetensors"]
    ),
    "an index to above": (index({KEY: ".."}), ["index.json", "outside"]),
    "an index of lists": (index({KEY: ["a"]}), ["index.json"]),
    "an index that is a list": (index([KEY]), ["index.json"]),
    "an index of nothing": (index(None), ["index.json"]),
}  # fmt: skip
