"""The smallest model and run that have every file, and a way to edit them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.mistakes.pretraining import ALBERT

RUN = [*ALBERT, "checkpoint.every=1"]
TINY = {
    "vocab_size": 12, "embedding_size": 4, "hidden_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16,
}  # fmt: skip


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
