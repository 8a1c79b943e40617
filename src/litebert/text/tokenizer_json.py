"""tokenizer.json files that others wrote -> a model and its normalization.

Only the three kinds we know are read, and only if their normalizers are one of ours: running a
file's own steps would mean ids whose offsets and word starts we cannot answer for.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from litebert.text.backend import Backend, BadTokenizer
from litebert.text.huggingface import find_written
from litebert.text.sentencepiece_backend import SentencePieceBackend
from litebert.text.sentencepiece_file import PieceType, write_model
from litebert.text.tokenizers_backend import BPEBackend, WordPieceBackend

_UNDERSTOOD = "read by litebert: ALBERT's, BERT's and RoBERTa's kinds"


def in_order(vocabulary: dict[str, Any]) -> list[str]:
    """Tokens in the order of their ids, which must be 0, 1, 2, …"""
    numbers = list(vocabulary.values())
    if not all(type(number) is int for number in numbers):
        raise BadTokenizer("it has ids that are not whole numbers")
    if sorted(numbers) != list(range(len(numbers))):
        raise BadTokenizer(f"its ids are not 0 to {len(numbers) - 1} without a gap")
    return sorted(vocabulary, key=vocabulary.__getitem__)


def from_tokenizer_json(content: dict[str, Any]) -> tuple[Backend, str]:
    """The model and normalization of a tokenizer.json, or BadTokenizer."""
    try:
        model = content["model"]
        kind = model.get("type")
        if kind in _KINDS:
            read, foreign_normalization = _KINDS[kind]
            backend = read(content)
            return backend, find_written(backend, content) or foreign_normalization(content)
    except (LookupError, TypeError, AttributeError, ValueError, StopIteration) as error:
        if isinstance(error, BadTokenizer):
            raise
        raise BadTokenizer(f"not a tokenizer {_UNDERSTOOD} ({error!r})") from None
    raise BadTokenizer(f"a {kind!r} model; not {_UNDERSTOOD}")


def _with_added(content: dict[str, Any]) -> list[str]:
    added = {token["content"]: token["id"] for token in content.get("added_tokens") or []}
    return in_order(content["model"]["vocab"] | added)


def _json_merges(merges: list[Any]) -> list[tuple[str, str]]:
    pairs = []
    for merge in merges:
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        pairs.append((left, right))
    return pairs


def _bert_normalization(content: dict[str, Any]) -> str:
    normalizer = content["normalizer"]
    lower = normalizer["lowercase"]
    strips = lower if normalizer["strip_accents"] is None else normalizer["strip_accents"]
    usual = normalizer["type"] == "BertNormalizer" and normalizer["clean_text"]
    if not usual or not normalizer["handle_chinese_chars"] or strips != lower:
        raise BadTokenizer(f"its normalizer {json.dumps(normalizer)[:200]} is not BERT's")
    return "bert-uncased" if lower else "bert-cased"


def _no_normalization(content: dict[str, Any]) -> str:
    splitter = content["pre_tokenizer"]
    if content["normalizer"] is not None or splitter["type"] != "ByteLevel":
        raise BadTokenizer("its BPE is not RoBERTa's byte-level one")
    if splitter["add_prefix_space"] or not splitter.get("use_regex", True):
        raise BadTokenizer("it adds a space before the text, which litebert does not support")
    return "none"


def _wordpiece(content: dict[str, Any]) -> Backend:
    return WordPieceBackend(_with_added(content))


def _bpe(content: dict[str, Any]) -> Backend:
    return BPEBackend(_with_added(content), _json_merges(content["model"]["merges"]))


def _unigram(content: dict[str, Any]) -> Backend:
    """ALBERT's tokenizer.json as a model file. Its quote rewriting is not Google's: left out."""
    model = content["model"]
    controls = {token["content"] for token in content["added_tokens"] if token["special"]}
    rows = []
    for index, (token, score) in enumerate(model["vocab"]):
        kind = PieceType.CONTROL if token in controls else PieceType.NORMAL
        rows.append((token, float(score), PieceType.UNKNOWN if index == model["unk_id"] else kind))
    charsmap = b""
    for step in _steps(content):
        if step["type"] == "Precompiled":
            charsmap = base64.b64decode(step["precompiled_charsmap"] or "", validate=True)
    return SentencePieceBackend(write_model(rows, charsmap, name="stored"))


def _steps(content: dict[str, Any]) -> list[dict[str, Any]]:
    steps = content["normalizer"] or {"type": "Sequence", "normalizers": []}
    return steps["normalizers"] if steps["type"] == "Sequence" else [steps]


def _unigram_normalization(content: dict[str, Any]) -> str:
    steps = [step["type"] for step in _steps(content)]
    known = [step for step in steps if step not in ("Replace", "Precompiled", "Strip")]
    for normalization, pattern in _UNIGRAM_NORMALIZATIONS.items():
        if known == pattern:
            return normalization
    raise BadTokenizer(f"its normalizers {', '.join(known)} are none of litebert's normalizations")


_UNIGRAM_NORMALIZATIONS = {
    "english": ["NFKD", "StripAccents", "Lowercase"],
    "lower": ["NFKC", "Lowercase"],
    "multilingual": ["NFKC"],
    "none": [],
}

# How a kind's model is read, and its normalization where somebody else wrote the file.
_KINDS: dict[str, tuple[Callable[[dict[str, Any]], Backend], Callable[[dict[str, Any]], str]]] = {
    "WordPiece": (_wordpiece, _bert_normalization),
    "BPE": (_bpe, _no_normalization),
    "Unigram": (_unigram, _unigram_normalization),
}
