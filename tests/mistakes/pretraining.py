"""Small presets on the command line, and what a run's folder holds."""

from __future__ import annotations

import re
from pathlib import Path

SMALL = [
    "model.hidden_size=16", "model.num_hidden_layers=1", "model.num_attention_heads=2",
    "model.intermediate_size=20", "data.max_length=32", "data.batch_size=4",
    "evaluation.sequences=4", "precision=fp32", "budget=2steps",
]  # fmt: skip
ALBERT = ["albert-tiny", *SMALL, "model.embedding_size=8", "initialization=truncated_normal"]
ELECTRA = [
    "electra-small", *SMALL, "model.embedding_size=8", "generator.hidden_size=4",
    "generator.intermediate_size=8",
]  # fmt: skip
AS_FOUND = [one for one in ALBERT if not one.startswith("model.")]  # the shape of --from's model
ROBERTA = ["roberta-base", *SMALL, "model.embedding_size=16"]
SPANBERT = ["spanbert-base", *SMALL, "model.embedding_size=16"]


def arguments(preset: list[str], corpus: object, out: object, *more: object) -> list[object]:
    """`pretrain` with a small preset; further settings are written key=value."""
    name, *overrides = preset
    overrides += [str(one) for one in more if re.match(r"[a-z_.]+=", str(one))]
    rest = [one for one in more if not re.match(r"[a-z_.]+=", str(one))]
    chosen = [part for one in overrides for part in ("--set", one)]
    return ["pretrain", name, "--corpus", corpus, "--out", out, *chosen, *rest]


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}  # fmt: skip


def assert_all_in(words: list[str], sentence: str) -> None:
    for word in words:
        assert word in sentence, sentence
