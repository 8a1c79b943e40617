"""tokenizer.json and tokenizer_config.json: the same ids in `transformers`, offline.

The files name the generic fast class, which runs tokenizer.json as it stands and never converts
a spiece.model itself. Our normalization is written as a row of its normalizers.

Deliberate difference: `transformers` turns a special token's name inside a text ("[MASK]") into
the special id, as its users expect; our `encode` never does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from litebert.text.backend import Backend, replace_step
from litebert.text.normalization import character_ranges, combining_class

SETTINGS_KEY = "litebert"
FORMAT_VERSION = 1
Steps = list[dict[str, Any]]  # of a normalizer


def tokenizer_json(backend: Backend, normalization: str) -> dict[str, Any]:
    """The content of tokenizer.json."""
    parts = backend.pipeline()
    normalizers = _normalizers(normalization, parts["normalizers"])
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


def tokenizer_config(
    backend: Backend, normalization: str, max_length: int | None
) -> dict[str, Any]:
    """The content of tokenizer_config.json, our own settings included."""
    tokens, special = backend.tokens, backend.special
    names = {f"{role}_token": tokens[getattr(special, role)] for role in vars(special)}
    if backend.kind == "bpe":
        names |= {"bos_token": names["cls_token"], "eos_token": names["sep_token"]}
    types = [] if backend.kind == "bpe" else ["token_type_ids"]
    ours = {"format": FORMAT_VERSION, "kind": backend.kind, "normalization": normalization}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **names,
        **({} if max_length is None else {"model_max_length": max_length}),
        "model_input_names": ["input_ids", *types, "attention_mask"],
        "clean_up_tokenization_spaces": False,
        SETTINGS_KEY: ours,
    }


def _normalizers(normalization: str, model: Steps) -> Steps:
    if normalization in ("bert-uncased", "bert-cased"):
        lower = normalization == "bert-uncased"
        return [step | {"strip_accents": lower, "lowercase": lower} for step in model]
    return [*_NORMALIZERS[normalization](), *model]


def _lower_case() -> Steps:
    """Python's lower case: a sigma that ends a word has a form of its own."""
    before, after = r"(?<=\p{Cased})\p{Case_Ignorable}*\K", r"(?!\p{Case_Ignorable}*\p{Cased})"
    return [replace_step(f"{before}Σ{after}", "ς"), {"type": "Lowercase"}]


def _collapse_spaces() -> Steps:
    spaces = character_ranges([code for code in range(0x3001) if chr(code).isspace()])
    return [replace_step(f"[{spaces}]+", " "), replace_step("^ | $", "")]


_NORMALIZERS: dict[str, Callable[[], Steps]] = {
    "english": lambda: [
        {"type": "NFKD"}, replace_step(combining_class(), ""), *_lower_case(), *_collapse_spaces()
    ],
    "multilingual": lambda: [{"type": "NFKC"}, *_collapse_spaces()],
    "lower": lambda: [{"type": "NFKC"}, *_lower_case(), *_collapse_spaces()],
    "none": list,
}  # fmt: skip


def _added_tokens(backend: Backend) -> list[dict[str, Any]]:
    return [
        {
            "id": index,
            "content": backend.tokens[index],
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
    tokens, special = backend.tokens, backend.special
    cls, sep = tokens[special.cls], tokens[special.sep]
    if backend.kind == "bpe":
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
