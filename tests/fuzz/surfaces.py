"""Every door through which somebody else's bytes come in: a row each.

A surface writes sound files once (`build`); a mutant changes some of them and `use` opens them
through the public functions, writing nowhere but to `out`. `command` is the same on the command
line. The modules beside this one have the functions of all rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import corpora, models, runs, settings, tables, tokenizers
from tests.fuzz.mutate import mutate_file

Use = Callable[[Path, Path], None]


@dataclass(frozen=True)
class Surface:
    """Sound files, which of them are mutated, and who opens them."""

    build: Callable[[Path], None]
    use: Use
    files: tuple[str, ...] = ("*",)
    command: Callable[[Path, Path], list[str]] | None = None
    prepare: Callable[[Path, random.Random], None] | None = None  # after a mutation


SURFACES: dict[str, Surface] = {
    "config": Surface(
        models.build_model, models.use_model, ("model/config.json",), models.import_command
    ),
    "weights": Surface(
        models.build_model, models.use_model, ("model/*.safetensors",), models.import_command
    ),
    "manifest": Surface(
        models.build_sealed, models.use_sealed, ("model/*",), models.import_command
    ),
    "task model": Surface(
        models.build_task_model, models.use_task_model, ("model/config.json", "model/*.json")
    ),
    "sentencepiece": Surface(
        tokenizers.build_tokenizer("sentencepiece"),
        tokenizers.use_tokenizer,
        ("tokenizer/*",),
        tokenizers.show_command,
    ),
    "wordpiece": Surface(
        tokenizers.build_tokenizer("wordpiece"),
        tokenizers.use_tokenizer,
        ("tokenizer/*",),
        tokenizers.show_command,
    ),
    "bpe": Surface(
        tokenizers.build_tokenizer("bpe"),
        tokenizers.use_tokenizer,
        ("tokenizer/*",),
        tokenizers.show_command,
    ),
    "tokenizer.json": Surface(
        tokenizers.build_tokenizer("sentencepiece", "tokenizer.json"),
        tokenizers.use_tokenizer,
        ("tokenizer/*",),
        tokenizers.show_command,
    ),
    "store": Surface(
        corpora.build_store, corpora.use_store, ("store/*.json",), corpora.inspect_command
    ),
    "shard": Surface(
        corpora.build_store, corpora.use_store, ("store/shards/*",), corpora.inspect_command
    ),
    "checkpoint": Surface(
        runs.build_checkpoints, runs.use_checkpoints, ("00000002/*",), prepare=runs.seal
    ),
    "run": Surface(runs.build_run, runs.use_run, ("run/*",)),
    "metrics": Surface(runs.build_metrics, runs.use_metrics, ("run/*",), runs.plot_command),
    "preset": Surface(
        settings.build_presets, settings.use_presets, ("*.toml",), settings.plan_command
    ),
    "recipe": Surface(settings.build_recipes, settings.use_recipes, ("*.toml",)),
    "options": Surface(
        settings.build_options, settings.use_options, (), prepare=settings.draw_options
    ),
    "table": Surface(tables.build_tables, tables.use_tables, ("rows.*",)),
    "archive": Surface(tables.build_archives, tables.use_tables, ("rows.*",)),
    "task files": Surface(tables.build_task_files, tables.use_task_files, ("*.*", "SST-2/*")),
    "tensorflow": Surface(models.build_tensorflow, models.use_tensorflow, ("google/*",)),
    "paper tables": Surface(
        settings.build_paper_tables, settings.use_paper_tables, ("*.toml", "*.jsonl")
    ),
    "corpus": Surface(corpora.build_corpus, corpora.use_corpus, ("?.*",)),
}


def mutants(folder: Path, surface: Surface, chance: random.Random) -> dict[Path, bytes]:
    """Mutants of one or two of a surface's files, by path."""
    paths = sorted({path for pattern in surface.files for path in folder.glob(pattern)})
    paths = [path for path in paths if path.is_file()]
    chosen = chance.sample(paths, min(len(paths), chance.choice((1, 1, 1, 2))))
    return {path: mutate_file(path.name, path.read_bytes(), chance) for path in chosen}
