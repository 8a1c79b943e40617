"""The model folder: THE artefact. Hugging Face's layout, plus what it has no place for.

config.json               transformers' keys, and ours under "litebert"
model.safetensors         the tensors of the class named in "architectures"
litebert.safetensors      tensors which that class lacks (span boundary, a spare pooler), if any
modules.json, 1_Pooling/  how sentence-transformers makes a vector of a text (sentence_encoder.py)
2_Dense/                  a mean-pooled classifier, as sentence-transformers has it
README.md                 the model card (card.py)
tokenizer files           copied along by `import` and `export`
manifest.json             sizes and SHA-256 of all of these, written last
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from litebert.base.errors import FileError, FormatError
from litebert.base.files import (
    check_manifest,
    check_regular,
    read_json,
    write_json,
)
from litebert.base.remote.folders import local_folder, new_folder
from litebert.base.remote.objects import object_at
from litebert.base.remote.urls import as_url, join
from litebert.model.card import CardFacts, model_card
from litebert.model.huggingface import DENSE_HEAD, KEY, Contents, read_contents, write_contents
from litebert.model.sentence_encoder import (
    DENSE,
    SentenceEncoderSettings,
    check_dense,
    read_sentence_encoder,
    write_sentence_encoder,
)
from litebert.model.tensor_names import refused_names
from litebert.text.tokenizer import Tokenizer

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
EXTRA_WEIGHTS = "litebert.safetensors"
INDEX = "model.safetensors.index.json"
CARD = "README.md"
MODEL = "model"  # the folder below a run's that holds its model
TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "spiece.model", "vocab.txt", "vocab.json", "merges.txt",
)  # fmt: skip
_DENSE_TENSORS = {
    f"heads.{DENSE_HEAD}.dense.{part}": f"linear.{part}" for part in ("weight", "bias")
}
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


def find_model_folder(folder: Path) -> Path:
    """The model of a run, or the folder itself where it is a model folder already.

    Of a URL, a copy of it.
    """
    if url := as_url(folder):
        inner = join(url, MODEL)
        return local_folder(inner if object_at(join(inner, CONFIG)) else url)
    return folder / MODEL if os.path.isdir(folder / MODEL) else folder


def read_folder(folder: Path) -> Contents:
    """Read a model folder and check its manifest and its names."""
    if not os.path.isdir(folder):
        raise FileError(f"{folder}: no such model folder")
    check_manifest(folder)
    _refuse_pickles(folder)
    raw = read_json(folder / CONFIG)
    tensors: dict[str, Tensor] = {}
    for file in _weight_files(folder):
        _add_tensors(tensors, read_tensors(file), file)
    contents = read_contents(raw, tensors, str(folder))
    if os.path.lexists(folder / EXTRA_WEIGHTS):
        _add_heads(contents, read_tensors(folder / EXTRA_WEIGHTS), folder / EXTRA_WEIGHTS)
    contents.sentence_encoder = read_sentence_encoder(folder)
    if raw.get(KEY, {}).get("dense_head") == DENSE_HEAD:
        _add_dense_head(contents, folder)
    return contents


def _add_tensors(tensors: dict[str, Tensor], more: dict[str, Tensor], file: Path) -> None:
    """Add a file's tensors, none of which may be there yet."""
    for name in sorted(tensors.keys() & more.keys()):
        raise FormatError(f"{file}: tensor {name!r} is also in another file of its folder")
    tensors |= more


def write_folder(
    contents: Contents, folder: Path, *, overwrite: bool = False, beside: Path | None = None,
    tokenizer: Tokenizer | None = None, facts: CardFacts | None = None,
) -> None:  # fmt: skip
    """Write a model folder, whole or not at all, with a tokenizer or the files of one `beside`."""
    raw, tensors, extra = write_contents(contents)
    refused = [name for name in refused_names(contents.heads) if name not in tensors]
    with new_folder(folder, overwrite=overwrite) as scratch:
        write_json(scratch / CONFIG, raw)
        write_tensors(scratch / WEIGHTS, tensors | {name: torch.zeros(0) for name in refused})
        _write_sentence_encoder(contents, extra, scratch)
        if extra:
            write_tensors(scratch / EXTRA_WEIGHTS, extra)
        (scratch / CARD).write_text(model_card(contents, facts), encoding="utf-8")
        if beside is not None:
            copy_tokenizer(beside, scratch)
        if tokenizer is not None:
            tokenizer.save(scratch, max_length=contents.config.longest_sequence)


def _write_sentence_encoder(contents: Contents, extra: dict[str, Tensor], folder: Path) -> None:
    """What sentence-transformers reads; a mean-pooled classifier moves there from `extra`."""
    dense = DENSE_HEAD in contents.heads
    settings = contents.sentence_encoder or (SentenceEncoderSettings() if dense else None)
    if settings is None or (settings.unknown and not dense):
        return
    labels = len(contents.labels) if dense else None
    write_sentence_encoder(settings, folder, contents.config.hidden_size, labels)
    if dense:
        tensors = {theirs: extra.pop(ours) for ours, theirs in _DENSE_TENSORS.items()}
        write_tensors(folder / DENSE / WEIGHTS, tensors)


def write_card(folder: Path, facts: CardFacts) -> None:
    """A new card for a model folder that is still being written, before its manifest."""
    (folder / CARD).write_text(model_card(read_folder(folder), facts), encoding="utf-8")


def copy_tokenizer(source: Path, destination: Path) -> None:
    """Take tokenizer files along; Google's SentencePiece model gets the name transformers knows."""
    for name in TOKENIZER_FILES:
        if os.path.isfile(source / name):
            shutil.copyfile(source / name, destination / name)
    pieces = list(source.glob("*.model"))
    if len(pieces) == 1 and not os.path.exists(destination / "spiece.model"):
        shutil.copyfile(pieces[0], destination / "spiece.model")


def read_tensors(file: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file, floating-point ones as float32, all of them finite."""
    check_regular(file)
    try:
        with safe_open(file, framework="pt") as reader:
            tensors = {name: reader.get_tensor(name) for name in reader.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError, AttributeError) as error:
        raise FormatError(
            f"{file}: not a whole safetensors file ({error}); copy it again, or convert it with "
            "`safetensors.torch.save_file` if it is something else"
        ) from None
    return {name: _float32(tensor, f"{file}: tensor {name!r}") for name, tensor in tensors.items()}


def write_tensors(file: Path, tensors: Mapping[str, Tensor]) -> None:
    """A safetensors file as transformers expects it."""
    whole = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    try:
        save_file(whole, file, metadata={"format": "pt"})
    except SafetensorError as error:  # its input is sound, so this is the disk
        raise OSError(str(error)) from None


def _float32(tensor: Tensor, where: str) -> Tensor:
    if not tensor.is_floating_point() and not where.endswith("_ids'"):  # buffers, dropped later
        kind = str(tensor.dtype).removeprefix("torch.")
        raise FormatError(f"{where} holds {kind}, expected floats")
    tensor = tensor.to(torch.float32)
    check_finite(tensor, where)
    return tensor


def check_finite(tensor: Tensor, where: str) -> None:
    """Refuse a tensor with a NaN or an infinite value: whatever it touched would be NaN."""
    if tensor.numel() and not torch.stack(tensor.aminmax()).isfinite().all():
        raise FormatError(
            f"{where} has values that are NaN or infinite; its training diverged, or the file is "
            "damaged: take an earlier checkpoint, or copy it again"
        )


def _weight_files(folder: Path) -> list[Path]:
    """One file, or the parts that an index lists; an index names files of its own folder only."""
    if os.path.lexists(folder / WEIGHTS) or not os.path.lexists(folder / INDEX):
        return [folder / WEIGHTS]
    listed = read_json(folder / INDEX).get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise FormatError(f"{folder / INDEX}: weight_map is not a table of tensors and files")
    for name in listed.values():
        if not isinstance(name, str) or Path(name).name != name or name in ("", ".."):
            raise FormatError(f"{folder / INDEX}: lists {name!r}, a file outside its own folder")
    return [folder / name for name in sorted(set(listed.values()))]


def _refuse_pickles(folder: Path) -> None:
    if os.path.exists(folder / WEIGHTS) or os.path.exists(folder / INDEX):
        return
    for file in sorted(folder.iterdir()):
        refuse_pickle(file)


def refuse_pickle(file: Path) -> None:
    """Say how to convert a pickle, told by its name."""
    if os.path.isfile(file) and file.suffix in PICKLES:
        raise FormatError(
            f"{file}: a pickle can run code when opened, so it is refused; convert it where you "
            "trust it: load it with transformers and call save_pretrained(folder), which writes "
            "model.safetensors"
        )


def _add_heads(contents: Contents, extra: dict[str, Tensor], file: Path) -> None:
    """Add heads that Hugging Face's class lacks, or a pooler it leaves out."""
    heads = [name.split(".")[1] for name in extra if name.startswith("heads.")]
    contents.heads = tuple(dict.fromkeys([*contents.heads, *heads]))
    _add_tensors(contents.tensors, extra, file)


def _add_dense_head(contents: Contents, folder: Path) -> None:
    """The classifier out of 2_Dense; it is not there where someone saved the encoder alone."""
    settings = contents.sentence_encoder
    if settings is None or settings.unknown != (DENSE,):
        return
    check_dense(folder / DENSE)
    file = folder / DENSE / WEIGHTS
    found = read_tensors(file)
    if found.keys() != set(_DENSE_TENSORS.values()):
        raise FormatError(
            f"{file}: holds {', '.join(sorted(found)) or 'nothing'}, expected "
            f"{', '.join(_DENSE_TENSORS.values())}"
        )
    _add_heads(contents, {name: found[theirs] for name, theirs in _DENSE_TENSORS.items()}, file)
    contents.sentence_encoder = settings.model_copy(update={"unknown": ()})
