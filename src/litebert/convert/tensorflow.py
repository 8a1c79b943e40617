"""Google's TensorFlow checkpoints of ALBERT and BERT, to and from Hugging Face names.

One table of names serves both directions. A TensorFlow `kernel` is the transpose of a PyTorch
`weight`; embedding tables and `output_weights` are not transposed. What the table does not know is
an error, never skipped in silence: only the state of Google's optimizers is left behind.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from litebert.base.errors import FileError, FormatError
from litebert.base.files import read_json, write_json
from litebert.convert.bundle import Entry, list_variables, read_variable, write_bundle

# How the last part of a name differs, by the kind of layer.
LEAVES = {
    "dense": {"/kernel": ".weight", "/bias": ".bias"},
    "kernel": {"/kernel": ".weight"},
    "norm": {"/gamma": ".weight", "/beta": ".bias"},
    "output": {"output_weights": ".weight", "output_bias": ".bias"},
    "table": {"": ".weight"},
    "vector": {"": ""},
}

# (kind, TensorFlow, Hugging Face); {0} and {1} are numbers, MODEL is "albert" or "bert".
BOTH = (
    ("table", "bert/embeddings/word_embeddings", "MODEL.embeddings.word_embeddings"),
    ("table", "bert/embeddings/position_embeddings", "MODEL.embeddings.position_embeddings"),
    ("table", "bert/embeddings/token_type_embeddings", "MODEL.embeddings.token_type_embeddings"),
    ("norm", "bert/embeddings/LayerNorm", "MODEL.embeddings.LayerNorm"),
    ("output", "", "classifier"),
    ("output", "cls/squad/", "qa_outputs"),
)
GROUP = "bert/encoder/transformer/group_{0}/inner_group_{1}"
SHARED = "albert.encoder.albert_layer_groups.{0}.albert_layers.{1}"
MAPPING = "albert.encoder.embedding_hidden_mapping_in"
ALBERT = (
    ("dense", "bert/encoder/embedding_hidden_mapping_in", MAPPING),
    ("dense", f"{GROUP}/attention_1/self/query", f"{SHARED}.attention.query"),
    ("dense", f"{GROUP}/attention_1/self/key", f"{SHARED}.attention.key"),
    ("dense", f"{GROUP}/attention_1/self/value", f"{SHARED}.attention.value"),
    ("dense", f"{GROUP}/attention_1/output/dense", f"{SHARED}.attention.dense"),
    ("norm", f"{GROUP}/LayerNorm", f"{SHARED}.attention.LayerNorm"),
    ("dense", f"{GROUP}/ffn_1/intermediate/dense", f"{SHARED}.ffn"),
    ("dense", f"{GROUP}/ffn_1/intermediate/output/dense", f"{SHARED}.ffn_output"),
    ("norm", f"{GROUP}/LayerNorm_1", f"{SHARED}.full_layer_layer_norm"),
    ("dense", "bert/pooler/dense", "albert.pooler"),
    ("dense", "cls/predictions/transform/dense", "predictions.dense"),
    ("norm", "cls/predictions/transform/LayerNorm", "predictions.LayerNorm"),
    ("vector", "cls/predictions/output_bias", "predictions.bias"),
    ("output", "cls/seq_relationship/", "sop_classifier.classifier"),
    # SQuAD 2.0: the end is scored given the start; Hugging Face has no such head for ALBERT.
    ("dense", "start_logits/dense", "conditional_span.start"),
    ("dense", "end_logits/dense_0", "conditional_span.end_hidden"),
    ("norm", "end_logits/LayerNorm", "conditional_span.end_norm"),
    ("dense", "end_logits/dense_1", "conditional_span.end"),
    ("dense", "answer_class/dense_0", "conditional_span.answerable_hidden"),
    ("kernel", "answer_class/dense_1", "conditional_span.answerable"),
)
LAYER, OWN = "bert/encoder/layer_{0}", "bert.encoder.layer.{0}"
BERT = (
    ("dense", f"{LAYER}/attention/self/query", f"{OWN}.attention.self.query"),
    ("dense", f"{LAYER}/attention/self/key", f"{OWN}.attention.self.key"),
    ("dense", f"{LAYER}/attention/self/value", f"{OWN}.attention.self.value"),
    ("dense", f"{LAYER}/attention/output/dense", f"{OWN}.attention.output.dense"),
    ("norm", f"{LAYER}/attention/output/LayerNorm", f"{OWN}.attention.output.LayerNorm"),
    ("dense", f"{LAYER}/intermediate/dense", f"{OWN}.intermediate.dense"),
    ("dense", f"{LAYER}/output/dense", f"{OWN}.output.dense"),
    ("norm", f"{LAYER}/output/LayerNorm", f"{OWN}.output.LayerNorm"),
    ("dense", "bert/pooler/dense", "bert.pooler.dense"),
    ("dense", "cls/predictions/transform/dense", "cls.predictions.transform.dense"),
    ("norm", "cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm"),
    ("vector", "cls/predictions/output_bias", "cls.predictions.bias"),
    ("output", "cls/seq_relationship/", "cls.seq_relationship"),
)
FAMILIES = {"albert": BOTH + ALBERT, "bert": BOTH + BERT}
MARKS = {"albert": "bert/encoder/transformer/group_", "bert": "bert/encoder/layer_"}

# The state of training, which a model does not need. Slots lie beside their variable.
SKIPPED = re.compile(
    r".*/(adam_[mv]|(AdamWeightDecayOptimizer|LAMBOptimizer|LAMB|Adam)(_\d+)?)"
    r"|(.*/)?(global_step|beta[12]_power)|signal_early_stopping/.*"
)

# The first of these tensors that is there tells the class; heads of tasks come first.
HEADS = (
    ("conditional_span.start.weight", "Model"),
    ("qa_outputs.weight", "ForQuestionAnswering"),
    ("classifier.weight", "ForSequenceClassification"),
    ("sop_classifier.classifier.weight", "ForPreTraining"),
    ("cls.seq_relationship.weight", "ForPreTraining"),
    ("predictions.bias", "ForMaskedLM"),
    ("cls.predictions.bias", "ForMaskedLM"),
)
WRITTEN = {head for _, head in HEADS} | {"Model", "ForMultipleChoice"}

# Google's code knows these two, and its GELU is the tanh form.
ACTIVATIONS = {"gelu": "gelu_new", "relu": "relu"}
EPSILON = 1e-12  # of every layer normalization in Google's code
NEEDED = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
OPTIONAL = (
    "num_hidden_groups",
    "inner_group_num",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "initializer_range",
)
# Switches of Google's ALBERT that were never released in another position.
SWITCHES = {"net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0, "down_scale_factor": 1}


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
    config = _from_google(settings, read_json(settings), family)
    tensors = {
        target: _tensor(prefix, entries[name], transpose)
        for target, (name, transpose) in targets.items()
    }
    return config | _architecture(family, tensors, regression), tensors


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
    google = _to_google(config, family)
    rules = _rules(family, to_tensorflow=True)
    variables = {}
    for name, tensor in _untied(family, _without_identity(config, _full_names(family, tensors))):
        found = _rename(name, rules)
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
    if not path.is_dir():
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
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    found = re.search(r'^model_checkpoint_path: "([^"\n]*)"', text, re.MULTILINE)
    return re.split(r"[/\\]", found.group(1))[-1] if found else ""


def _find_config(folder: Path, family: str) -> Path:
    for name in (f"{family}_config.json", "albert_config.json", "bert_config.json"):
        if (folder / name).is_file():
            return folder / name
    found = sorted(folder.glob("*config*.json"))
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise FileError(
            f"{folder}: needs {family}_config.json beside the checkpoint, found {names}; "
            "copy Google's config there under that name"
        )
    return found[0]


# ---- names


def _rules(family: str, *, to_tensorflow: bool) -> list[tuple[re.Pattern[str], str, bool]]:
    """Each name of the table as (pattern, replacement, whether to transpose)."""
    rules = []
    for kind, tensorflow, huggingface in FAMILIES[family]:
        for leaf, own_leaf in LEAVES[kind].items():
            names = [tensorflow + leaf, huggingface.replace("MODEL", family) + own_leaf]
            source, target = reversed(names) if to_tensorflow else names
            pattern = re.escape(source)
            for number in (r"\{0\}", r"\{1\}"):
                pattern = pattern.replace(number, r"(\d+)")
            rules.append((re.compile(pattern), target, leaf == "/kernel"))
    return rules


def _rename(name: str, rules: list[tuple[re.Pattern[str], str, bool]]) -> tuple[str, bool] | None:
    for pattern, target, transpose in rules:
        if found := pattern.fullmatch(name):
            return target.format(*found.groups()), transpose
    return None


def _model_variables(prefix: Path) -> dict[str, Entry]:
    """The variables of the model by their name outside TF-Hub, which puts "module/" before it."""
    entries = {}
    for name, entry in list_variables(prefix).items():
        plain = re.sub(r"^(module/)+", "", name)
        if plain in entries:
            raise FormatError(f"{prefix}: holds {plain!r} twice, with and without 'module/'")
        if not SKIPPED.fullmatch(plain):
            entries[plain] = entry
    return entries


def _family(prefix: Path, names: dict[str, Entry]) -> str:
    for family, mark in MARKS.items():
        if any(name.startswith(mark) for name in names):
            return family
    raise FormatError(
        f"{prefix}: holds neither {MARKS['albert']}* nor {MARKS['bert']}*, so it is not one of "
        "Google's ALBERT or BERT checkpoints (those of TensorFlow 2's Keras are not read)"
    )


def _targets(prefix: Path, family: str, names: dict[str, Entry]) -> dict[str, tuple[str, bool]]:
    """Hugging Face name -> (TensorFlow name, whether to transpose)."""
    targets = {}
    rules = _rules(family, to_tensorflow=False)
    for name in names:
        if "layer_normalization" in name:
            raise FormatError(
                f"{prefix}: variable {name!r} is a layer normalization of TensorFlow 2, which "
                "gives every layer its own instead of sharing it (google-research/albert#241), "
                "and is not read; train under TensorFlow 1.15, where it is called LayerNorm"
            )
        found = _rename(name, rules)
        if found is None or found[0] in targets:
            raise FormatError(
                f"{prefix}: variable {name!r} is not part of Google's {family}, so this is "
                "another model; save a checkpoint without it"
            )
        targets[found[0]] = (name, found[1])
    return targets


def _tensor(prefix: Path, entry: Entry, transpose: bool) -> torch.Tensor:
    if transpose and len(entry.shape) != 2:
        raise FormatError(f"{prefix}: kernel {entry.name!r} has shape {entry.shape}, not 2 sizes")
    values = torch.from_numpy(read_variable(prefix, entry)).to(torch.float32)
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


# ---- settings


def _sizes(where: str, config: dict[str, Any], family: str) -> dict[str, Any]:
    """The settings that both sides spell alike."""
    needed = (*NEEDED, "embedding_size") if family == "albert" else NEEDED
    for key in (*needed, "hidden_act"):
        if key not in config:
            raise FormatError(f"{where}: has no {key!r}; add it to the {family} config")
    return {key: config[key] for key in needed + OPTIONAL if key in config}


def _from_google(path: Path, google: dict[str, Any], family: str) -> dict[str, Any]:
    sizes = _sizes(str(path), google, family)
    for key, value in SWITCHES.items():
        if google.get(key, value) != value:
            raise FormatError(f"{path}: {key} is {google[key]!r}, only {value} is known")
    activation = ACTIVATIONS.get(str(google["hidden_act"]))
    if activation is None:
        raise FormatError(
            f"{path}: hidden_act is {google['hidden_act']!r}, expected {' or '.join(ACTIVATIONS)}"
        )
    fixed = {"hidden_act": activation, "layer_norm_eps": EPSILON}
    return {"model_type": family} | sizes | fixed


def _to_google(config: dict[str, Any], family: str) -> dict[str, Any]:
    sizes = _sizes("config", config, family)
    names = {own: google for google, own in ACTIVATIONS.items()}
    if config["hidden_act"] not in names:
        raise FormatError(
            f"hidden_act {config['hidden_act']!r}: Google's code has only {', '.join(names)} (its "
            "'gelu' is the tanh form), so the model cannot be written as a TensorFlow checkpoint"
        )
    if config.get("layer_norm_eps", EPSILON) != EPSILON:
        raise FormatError(
            f"layer_norm_eps {config['layer_norm_eps']!r}: Google's code has {EPSILON} built in, "
            "so the model cannot be written as a TensorFlow checkpoint"
        )
    for name in config.get("architectures") or []:
        if name.removeprefix(family.capitalize()) not in WRITTEN:
            raise FormatError(f"{name}: Google's {family} code has no such head to write it for")
    switches = SWITCHES if family == "albert" else {}
    return {"hidden_act": names[config["hidden_act"]]} | sizes | switches


def _architecture(
    family: str, tensors: dict[str, torch.Tensor], regression: bool
) -> dict[str, Any]:
    head = next((head for name, head in HEADS if name in tensors), "Model")
    if head != "ForSequenceClassification":
        return {"architectures": [family.capitalize() + head]}
    outputs = tensors["classifier.weight"].shape[0]
    if outputs == 1 and not regression:
        return {"architectures": [family.capitalize() + "ForMultipleChoice"]}
    labels = {str(number): f"LABEL_{number}" for number in range(outputs)}
    return {
        "architectures": [family.capitalize() + head],
        "id2label": labels,
        "label2id": {label: int(number) for number, label in labels.items()},
    }
