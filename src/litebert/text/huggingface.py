"""tokenizer.json and tokenizer_config.json: the same ids in `transformers`, offline.

The files name the generic fast class, which runs tokenizer.json as it stands and never converts
a spiece.model itself. Our normalization is written as a row of its normalizers.

Deliberate difference: `transformers` turns a special token's name inside a text ("[MASK]") into
the special id, as its users expect; our `encode` never does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tokenizers import AddedToken, Regex, models, normalizers, processors
from tokenizers import Tokenizer as Engine

from litebert.text.backend import Backend
from litebert.text.normalization import character_ranges, combining_class

SETTINGS_KEY = "litebert"
FORMAT_VERSION = 1
MOST_MARKS = 8  # and one less behind a letter, before the sigma that ends a word


def tokenizer_json(backend: Backend, normalization: str) -> str:
    """The content of tokenizer.json."""
    engine, own = backend.engine()
    engine.normalizer = _normalizer(normalization, own)
    engine.post_processor = _post_processor(backend)
    special = sorted(set(vars(backend.special).values()))
    engine.add_special_tokens(
        [AddedToken(backend.tokens[index], normalized=False, special=True) for index in special]
    )
    return engine.to_str()


def _normalizer(normalization: str, own: list[Any]) -> Any:
    steps = [*_NORMALIZERS[normalization](), *own]
    return normalizers.Sequence(steps) if steps else None


def find_written(backend: Backend, content: dict[str, Any]) -> str | None:
    """The normalization with which we wrote a tokenizer.json; None if we did not.

    `transformers` saves it again as it was, and leaves the vocabulary's own files out.
    """
    engine, own = backend.engine()
    splitter = json.loads(engine.to_str())["pre_tokenizer"]
    for normalization in _NORMALIZERS:
        engine = Engine(models.WordLevel({}, ""))
        engine.normalizer = _normalizer(normalization, own)
        written = json.loads(engine.to_str())["normalizer"]
        if (written, splitter) == (content.get("normalizer"), content.get("pre_tokenizer")):
            return normalization
    return None


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


def _post_processor(backend: Backend) -> Any:
    """[CLS] A [SEP] and [CLS] A [SEP] B [SEP]; RoBERTa's has two separators and no types."""
    special = backend.special
    cls, sep = backend.tokens[special.cls], backend.tokens[special.sep]
    if backend.kind == "bpe":
        return processors.RobertaProcessing((sep, special.sep), (cls, special.cls), True, False)
    single = [f"{cls}:0", "$A:0", f"{sep}:0"]
    return processors.TemplateProcessing(
        single=single,
        pair=[*single, "$B:1", f"{sep}:1"],
        special_tokens=[(cls, special.cls), (sep, special.sep)],
    )


def _replace(pattern: str, content: str) -> Any:
    return normalizers.Replace(Regex(pattern), content)


def _lower_case() -> list[Any]:
    """Python's lower case: a sigma that ends a word has a form of its own.

    A letter comes before, perhaps with marks behind it. They are alternatives because no form for
    any number of marks is understood both by this library and by JavaScript, for browsers.
    """
    before = "|".join(r"\p{Cased}" + r"\p{Case_Ignorable}" * count for count in range(MOST_MARKS))
    after = r"\p{Case_Ignorable}*\p{Cased}"
    return [_replace(f"(?<={before})Σ(?!{after})", "ς"), normalizers.Lowercase()]


def _collapse_spaces() -> list[Any]:
    spaces = character_ranges([code for code in range(0x3001) if chr(code).isspace()])
    return [_replace(f"[{spaces}]+", " "), _replace("^ | $", "")]


def _bert(lower: bool) -> list[Any]:
    return [normalizers.BertNormalizer(True, False, lower, lower), *_collapse_spaces()]


_NORMALIZERS: dict[str, Callable[[], list[Any]]] = {
    "english": lambda: [
        normalizers.NFKD(), _replace(combining_class(), ""), *_lower_case(), *_collapse_spaces()
    ],
    "multilingual": lambda: [normalizers.NFKC(), *_collapse_spaces()],
    "lower": lambda: [normalizers.NFKC(), *_lower_case(), *_collapse_spaces()],
    "none": list,
    "bert-uncased": lambda: _bert(True),
    "bert-cased": lambda: _bert(False),
}  # fmt: skip
