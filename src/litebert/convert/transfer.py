"""`litebert import` and `litebert export`: models in from elsewhere, and out again.

In: a Hugging Face folder, or Google's TensorFlow checkpoint. Out: the same two, and ONNX. The
middle is always our model folder, which is Hugging Face's layout with a manifest.
"""

from __future__ import annotations

import os
from pathlib import Path

from torch import Tensor

from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.base.remote.folders import new_folder
from litebert.convert.onnx_export import export_onnx, parse_precisions
from litebert.convert.tensorflow import read_checkpoint, write_checkpoint
from litebert.model.folder import (
    CONFIG,
    copy_tokenizer,
    find_model_folder,
    refuse_pickle,
    write_folder,
)
from litebert.model.huggingface import Contents, read_contents, write_contents
from litebert.model.model import Model
from litebert.model.tensor_names import ARCHITECTURES
from litebert.tasks.readers.text_file import Say, quiet

FORMATS = ("huggingface", "onnx", "tensorflow")

OURS, THEIRS = "heads.conditional_span.", "conditional_span."


def import_model(source: str | Path, destination: str | Path) -> Model:
    """Read a foreign model, check it whole, and write it as a model folder of ours.

    Args:
        source: A Hugging Face folder (albert, bert, roberta or electra, with safetensors weights),
            or Google's TensorFlow checkpoint: a folder, or a prefix such as model.ckpt-best with
            its config beside it. Tokenizer files come along.
        destination: The model folder to write.
    """
    source, destination = Path(source), Path(destination)
    if os.path.isfile(source / CONFIG) or (os.path.isdir(source) and not _has_checkpoint(source)):
        model = Model.load(source)
    else:
        model = Model.from_contents(_read_tensorflow(source), where=str(source))
    tokenizer = source if os.path.isdir(source) else source.parent
    write_folder(model.contents(), destination, beside=tokenizer)
    return model


def export_model(
    source: str | Path, destination: str | Path, format: str = "huggingface", *,
    precision: str | None = None, head: str | None = None,
    check: str | Path | None = None, say: Say = quiet,
) -> Model:  # fmt: skip
    """Write a model folder as a Hugging Face folder, as Google's TensorFlow checkpoint or as ONNX.

    Example: litebert export tuned web --format onnx

    Args:
        source: A run, or a model folder.
        destination: The folder to write.
        format: "huggingface", "tensorflow" or "onnx".
        precision: Of ONNX: `fp32` (onnx/model.onnx), `int8` (onnx/model_quantized.onnx), or both
            as `fp32,int8`, which is the default.
        head: Of ONNX: the head whose answers the graph gives, or `features` for the last hidden
            states (and `sentence_embedding` of a sentence encoder). By default that of the task;
            without a task features of a sentence encoder, else masked_lm, else features.
        check: Of ONNX: labelled examples (a file, or a published task's folder) on which each file
            is scored before the export ends.
        say: Told what was checked, a sentence each.
    """
    if format not in FORMATS:
        raise SettingsError(f"format {format!r}: choose {' or '.join(FORMATS)}")
    for name, value in (("precision", precision), ("head", head), ("check", check)):
        if format != "onnx" and value is not None:
            raise SettingsError(f"--{name} {value}: goes with --format onnx only")
    source, destination = find_model_folder(Path(source)), Path(destination)
    model = Model.load(source)
    if format == "huggingface":
        write_folder(model.contents(), destination, beside=source)
    elif format == "onnx":
        examples = None if check is None else Path(check)
        names = parse_precisions("fp32,int8" if precision is None else precision)
        export_onnx(
            model, source, destination, precisions=names, head=head, check=examples, say=say
        )
    else:
        with new_folder(destination) as scratch:
            _write_tensorflow(model.contents(), scratch, str(source))
            copy_tokenizer(source, scratch)
    return model


def _has_checkpoint(folder: Path) -> bool:
    return any(folder.glob("*.index"))


def _read_tensorflow(source: Path) -> Contents:
    if not os.path.exists(source) and not os.path.exists(source.with_name(source.name + ".index")):
        raise FileError(f"{source}: no such folder or checkpoint")
    refuse_pickle(source)
    raw, tensors = read_checkpoint(source)
    conditional = {name: tensors.pop(name) for name in list(tensors) if name.startswith(THEIRS)}
    contents = read_contents(raw, tensors, str(source))
    if conditional:
        contents.heads = (*contents.heads, "conditional_span")
        contents.tensors |= {f"heads.{name}": tensor for name, tensor in conditional.items()}
    return contents


def _write_tensorflow(contents: Contents, folder: Path, where: str) -> None:
    if contents.config.family not in ("albert", "bert"):
        raise FormatError(
            f"{where}: Google's checkpoints hold albert and bert models, this is "
            f"{contents.config.family}; export it with --format huggingface"
        )
    raw, tensors, extra = write_contents(contents)
    write_checkpoint(folder, raw, tensors | _named_there(extra, contents.config.family, where))


def _named_there(extra: dict[str, Tensor], family: str, where: str) -> dict[str, Tensor]:
    """Names for tensors that transformers' class lacks and Google's graph has."""
    pooler = next(row.pooler for row in ARCHITECTURES[family] if row.pooler)
    named = {}
    for name, tensor in extra.items():
        if name.startswith("pooler.dense."):
            named[name.replace("pooler.dense", pooler)] = tensor
        elif name.startswith(OURS):
            named[name.removeprefix("heads.")] = tensor
        else:
            raise FormatError(
                f"{where}: tensor {name!r} has no place in Google's checkpoints; "
                "export it with --format huggingface"
            )
    return named
