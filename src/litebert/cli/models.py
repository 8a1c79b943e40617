"""Choose an encoder, plan what it costs, move models in and out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a setting, e.g. model.hidden_size=256."
    ),
]


def presets() -> None:
    """List the shipped encoders."""
    from rich.console import Console
    from rich.table import Table

    from litebert.configs.load import load_preset, preset_names

    table = Table("preset", "what it is")
    for name in preset_names():
        table.add_row(name, load_preset(name).title)
    Console().print(table)


def plan(
    preset: Annotated[list[str], typer.Argument(help="Presets by name, or TOML files of yours.")],
    sets: Sets = None,
    batch: Annotated[int, typer.Option(help="Sequences a step.")] = 32,
    length: Annotated[int, typer.Option(help="Tokens a sequence.")] = 128,
    budget: Annotated[
        str | None, typer.Option(help="How much training: 200Mtok, 125000steps, or 2h.")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Train for ten seconds each to learn the speed here.")
    ] = False,
    precision: Annotated[str, typer.Option(help="auto, bf16 or fp32.")] = "auto",
    checkpointing: Annotated[
        bool, typer.Option("--checkpointing", help="Recompute blocks: less memory, more time.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Say what training takes before you pay: parameters, FLOPs, memory, time.

    Several presets stand side by side, as in the paper's tables, with your machine's speed under
    --measure. With --json one preset prints an object, several print a list.

    Example: litebert plan albert-base bert-base --measure --budget 1Gtok
    """
    from rich.console import Console

    from litebert.base.runtime import check_precision
    from litebert.planning.report import plan as make_plan
    from litebert.planning.report import table

    chosen = check_precision(precision)
    plans = []
    for name in preset:
        if measure:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
        plans.append(
            make_plan(
                name, sets or (), batch=batch, length=length, budget=budget, measured=measure,
                precision=chosen, checkpointing=checkpointing,
            )
        )  # fmt: skip
    if as_json:
        print(json.dumps(plans[0] if len(plans) == 1 else plans, indent=2))
    else:
        Console().print(table(plans))


def import_(
    source: Annotated[Path, typer.Argument(help="A Hugging Face folder or TensorFlow checkpoint.")],
    destination: Annotated[Path, typer.Argument(help="The model folder to write.")],
) -> None:
    """Bring in a model: a Hugging Face folder, or Google's TensorFlow checkpoint.

    albert, bert, roberta and electra folders with safetensors weights; ALBERT and BERT checkpoints
    (a folder, or a prefix such as model.ckpt-best with its config beside it). Tokenizer files come
    along.
    """
    from litebert.convert.transfer import import_model

    _say(destination, import_model(source, destination))


def export(
    source: Annotated[Path, typer.Argument(help="A model folder.")],
    destination: Annotated[Path, typer.Argument(help="The folder to write.")],
    format: Annotated[str, typer.Option(help="huggingface or tensorflow.")] = "huggingface",
) -> None:
    """Take a model out: a folder for transformers, or Google's TensorFlow checkpoint.

    A model folder opens in transformers as it is; exporting checks and copies it.
    """
    from litebert.base.errors import SettingsError
    from litebert.convert.transfer import export_model

    if format not in ("huggingface", "tensorflow"):
        raise SettingsError(f"format {format!r}: choose huggingface or tensorflow")
    _say(destination, export_model(source, destination, format))  # type: ignore[arg-type]


def _say(destination: Path, model: object) -> None:
    from litebert.model.model import Model

    assert isinstance(model, Model)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    heads = ", ".join(model.heads) or "none"
    print(f"{destination}: {model.config.family}, {parameters:,} parameters, heads: {heads}")
