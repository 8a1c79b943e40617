"""tokenizer.json and tokenizer_config.json: the same ids in `transformers`, offline.

The files name the generic fast class, which runs tokenizer.json as it stands and never converts
a spiece.model itself. Our cleaning is written as a row of its normalizers.

Deliberate difference: `transformers` turns a special piece's name inside a text ("[MASK]") into
the special id, as its users expect; our `encode` never does.
"""

from __future__ import annotations

from typing import Any

from litebert.text.cleaning import character_ranges, combining_class
from litebert.text.contract import Backend

SETTINGS_KEY = "litebert"
FORMAT_VERSION = 1


def tokenizer_json(backend: Backend, cleaning: str) -> dict[str, Any]:
    """The content of tokenizer.json."""
    parts = backend.pipeline()
    normalizers = _normalizers(cleaning, parts["normalizers"])
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(backend),
        "normalizer": {"type": "Sequence", "normalizers": normalizers} if normalizers else None,
        "pre_tokenizer": parts["pre_tokenizer"],
        "post_processor": _post_processor(backend),
        "decoder": parts["decoder"],
        "model": parts["model"],
    }


def tokenizer_config(backend: Backend, cleaning: str, max_length: int | None) -> dict[str, Any]:
    """The content of tokenizer_config.json, our own settings included."""
    pieces, special = backend.pieces, backend.special
    names = {f"{role}_token": pieces[getattr(special, role)] for role in vars(special)}
    if backend.kind == "bytes":
        names |= {"bos_token": names["cls_token"], "eos_token": names["sep_token"]}
    types = [] if backend.kind == "bytes" else ["token_type_ids"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **names,
        **({} if max_length is None else {"model_max_length": max_length}),
        "model_input_names": ["input_ids", *types, "attention_mask"],
        "clean_up_tokenization_spaces": False,
        SETTINGS_KEY: {"format": FORMAT_VERSION, "kind": backend.kind, "cleaning": cleaning},
    }


def replace(pattern: str, content: str) -> dict[str, Any]:
    """A step that replaces what a regular expression matches."""
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _normalizers(cleaning: str, model: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if cleaning in ("bert-uncased", "bert-cased"):
        lower = cleaning == "bert-uncased"
        return [step | {"strip_accents": lower, "lowercase": lower} for step in model]
    return [*_CLEANING[cleaning](), *model]


def _english() -> list[dict[str, Any]]:
    return [{"type": "NFKD"}, replace(combining_class(), ""), *_lower_case(), *_collapse()]


def _multilingual() -> list[dict[str, Any]]:
    return [{"type": "NFKC"}, *_collapse()]


def _lower() -> list[dict[str, Any]]:
    return [{"type": "NFKC"}, *_lower_case(), *_collapse()]


def _none() -> list[dict[str, Any]]:
    return []


def _lower_case() -> list[dict[str, Any]]:
    """Python's lower case: a sigma that ends a word has a form of its own."""
    before, after = r"(?<=\p{Cased})\p{Case_Ignorable}*\K", r"(?!\p{Case_Ignorable}*\p{Cased})"
    return [replace(f"{before}Σ{after}", "ς"), {"type": "Lowercase"}]


def _collapse() -> list[dict[str, Any]]:
    spaces = character_ranges([code for code in range(0x3001) if chr(code).isspace()])
    return [replace(f"[{spaces}]+", " "), replace("^ | $", "")]


_CLEANING = {
    "english": _english,
    "multilingual": _multilingual,
    "lower": _lower,
    "none": _none,
}


def _added_tokens(backend: Backend) -> list[dict[str, Any]]:
    return [
        {
            "id": index,
            "content": backend.pieces[index],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index in sorted(set(vars(backend.special).values()))
    ]


def _post_processor(backend: Backend) -> dict[str, Any]:
    """[CLS] A [SEP] and [CLS] A [SEP] B [SEP]; RoBERTa's has two separators and no types."""
    pieces, special = backend.pieces, backend.special
    cls, sep = pieces[special.cls], pieces[special.sep]
    if backend.kind == "bytes":
        return {
            "type": "RobertaProcessing",
            "sep": [sep, special.sep],
            "cls": [cls, special.cls],
            "trim_offsets": True,
            "add_prefix_space": False,
        }
    single = [_token(cls, 0), _sequence("A", 0), _token(sep, 0)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, _sequence("B", 1), _token(sep, 1)],
        "special_tokens": {
            name: {"id": name, "ids": [index], "tokens": [name]}
            for name, index in ((cls, special.cls), (sep, special.sep))
        },
    }


def _token(name: str, kind: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": name, "type_id": kind}}


def _sequence(name: str, kind: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": kind}}
