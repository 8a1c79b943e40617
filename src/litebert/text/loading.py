"""Tokenizer files of any origin -> a model and its normalization.

Our own folders say what they are in tokenizer_config.json; where `transformers` saved one again,
only tokenizer.json is left of its files, and is read. Others are told by their files: spiece.model
before tokenizer.json before vocabularies.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, FormatError, LitebertError
from litebert.base.files import read_bytes, read_json
from litebert.text.backend import KINDS, Backend, BadTokenizer
from litebert.text.huggingface import FORMAT_VERSION, SETTINGS_KEY
from litebert.text.normalization import NORMALIZATIONS
from litebert.text.sentencepiece_backend import FILE, SentencePieceBackend
from litebert.text.sentencepiece_file import LARGEST_MODEL
from litebert.text.tokenizer_json import from_tokenizer_json, in_order
from litebert.text.tokenizers_backend import (
    MERGES,
    VOCAB_JSON,
    VOCAB_TXT,
    BPEBackend,
    WordPieceBackend,
)

CONFIG, TOKENIZER_JSON = "tokenizer_config.json", "tokenizer.json"
_OWN = {"sentencepiece": FILE, "wordpiece": VOCAB_TXT, "bpe": VOCAB_JSON}
_FILES = (FILE, TOKENIZER_JSON, VOCAB_TXT, VOCAB_JSON)


def load_backend(path: Path) -> tuple[Backend, str]:
    """The model and the name of its normalization."""
    settings = load_settings(path if os.path.isdir(path) else path.parent)
    file = _find(path, settings)
    try:
        backend, usual = _read_file(file)
    except BadTokenizer as error:
        raise FormatError(f"{file}: {error}") from None
    except LitebertError:
        raise
    except Exception as error:
        raise FormatError(f"{file}: the library refuses it ({error})") from None
    except BaseException as error:  # a panic in the library's Rust is not an Exception
        if type(error).__name__ != "PanicException":
            raise
        raise FormatError(f"{file}: damaged; the library stopped at it ({error})") from None
    if settings is None:
        return backend, usual
    if settings["kind"] != backend.kind:
        raise FormatError(
            f"{file}: a {backend.kind} model, {CONFIG} says {settings['kind']!r}; copy it again"
        )
    if file.name == TOKENIZER_JSON and usual != settings["normalization"]:
        raise FormatError(
            f"{file}: normalizes as {usual!r}, {CONFIG} says {settings['normalization']!r}; "
            f"take out the key {SETTINGS_KEY!r} there to go by the file"
        )
    return backend, settings["normalization"]


def _find(path: Path, settings: dict[str, Any] | None) -> Path:
    if os.path.isfile(path):
        return path
    if not os.path.isdir(path):
        raise FileError(f"{path}: no such file or folder")
    names = _FILES if settings is None else (_OWN[settings["kind"]], TOKENIZER_JSON)
    for name in names:
        if os.path.isfile(path / name):
            return path / name
    raise FormatError(f"{path}: no tokenizer here; expected one of {', '.join(names)}")


def load_settings(folder: Path) -> dict[str, Any] | None:
    """Our own settings in a folder's tokenizer_config.json, checked; None if not ours."""
    settings = _config(folder).get(SETTINGS_KEY)
    if settings is None:
        return None
    where = folder / CONFIG
    if not isinstance(settings, dict) or settings.get("format") != FORMAT_VERSION:
        raise FormatError(
            f"{where}: its {SETTINGS_KEY!r} settings are of a format that this version does not "
            f"read (it reads {FORMAT_VERSION}); a newer litebert wrote it"
        )
    if settings.get("kind") not in KINDS or settings.get("normalization") not in [*NORMALIZATIONS]:
        raise FormatError(f"{where}: its {SETTINGS_KEY!r} settings are damaged; copy it again")
    return settings


def _config(folder: Path) -> dict[str, Any]:
    return read_json(folder / CONFIG) if os.path.lexists(folder / CONFIG) else {}


def _read_file(file: Path) -> tuple[Backend, str]:
    if file.suffix == ".model":
        return SentencePieceBackend(read_bytes(file, LARGEST_MODEL)), "english"
    if file.name == TOKENIZER_JSON:
        return from_tokenizer_json(read_json(file))
    if file.suffix == ".txt" and file.name != MERGES:
        lower = _config(file.parent).get("do_lower_case", True)
        return WordPieceBackend(_lines(file)), "bert-uncased" if lower else "bert-cased"
    if file.name in (VOCAB_JSON, MERGES):
        tokens = in_order(read_json(file.parent / VOCAB_JSON))
        return BPEBackend(tokens, _merges(_lines(file.parent / MERGES))), "none"
    raise FormatError(
        f"{file}: not a tokenizer file; name a folder, a .model file, {VOCAB_TXT}, "
        f"{VOCAB_JSON} or {TOKENIZER_JSON}"
    )


def _lines(file: Path) -> list[str]:
    """Lines as \\n ends them; other separators are characters that may stand in a token."""
    try:
        text = read_bytes(file, LARGEST_MODEL).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{file}: not UTF-8 at byte {error.start:,}") from None
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _merges(lines: list[str]) -> list[tuple[str, str]]:
    merges = []
    for number, line in enumerate(lines):
        if number == 0 and line.startswith("#version"):
            continue
        parts = line.split(" ")
        if len(parts) != 2:
            raise BadTokenizer(f"line {number + 1} of {MERGES} is not two tokens: {line[:40]!r}")
        merges.append((parts[0], parts[1]))
    return merges
