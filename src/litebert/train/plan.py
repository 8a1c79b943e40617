"""`litebert plan`: what training takes before you pay. Arithmetic (planning/) and real steps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from litebert.base.budget import parse_budget
from litebert.base.errors import SettingsError
from litebert.base.files import check_writable, write_atomic
from litebert.base.runtime import Precision, check_precision
from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.corpus.store import open_store
from litebert.planning.cluster import (
    Cluster,
    ClusterPlan,
    parse_flops,
    parse_latency,
    parse_network,
    sizes,
)
from litebert.planning.picture import communication_picture
from litebert.planning.report import Plan, make_plan, on_cluster, spend
from litebert.train.build import fit_to_corpus
from litebert.train.speed import measure_speed


def plan(
    presets: str | Sequence[str],
    *,
    overrides: Sequence[str] = (),
    batch_size: int | None = None,
    max_length: int | None = None,
    budget: str | None = None,
    corpus: str | Path | Sequence[str | Path] = (),
    measure: bool = False,
    precision: Precision = "auto",
    checkpointing: bool = False,
    devices: int = 1,
    hosts: int = 1,
    network: str | None = None,
    latency: str = "50us",
    flops: str | None = None,
    price: float | None = None,
    watts: float | None = None,
    picture: str | Path | None = None,
) -> list[Plan]:
    """Say what training takes before you pay: parameters, FLOPs, memory, time.

    Several presets stand side by side, as in the paper's tables, with your machine's speed under
    --measure.

    Example: litebert plan albert-base bert-base --measure --budget 1Gtok

    Example: litebert plan albert-xxlarge bert-large --devices 64 --hosts 8 --network 100Gbit
    --flops 400T

    Args:
        presets: Presets by name, or TOML files of yours.
        overrides: Change settings, e.g. model.hidden_size=256.
        batch_size: Sequences a step; by default the preset's.
        max_length: Tokens a sequence; by default the preset's.
        budget: How much training: 200Mtok, 125000steps, or 2h.
        corpus: A store, or all its parts: its vocabulary is planned for, how many passes over its
            text the budget means, and --measure takes its batches.
        measure: Take real training steps for ten seconds each to learn the speed here.
        precision: bf16 or fp32; auto is as the preset says.
        checkpointing: Recompute activations in the backward pass: less memory, more time.
        devices: How many devices share a step. Without a budget, the preset's own is planned.
        hosts: How many hosts they are in.
        network: Speed between two hosts, each way, as 100Gbit.
        latency: Time from one host to another, as 50us or 10ms.
        flops: What one device sustains a second, as 400T; with --measure, what this one does.
        price: Of a device-hour, in any currency, for the cost of the run.
        watts: Of a device with its share of the host, for the energy of the run.
        picture: A PNG to draw: communication by the number of devices. Extra `plot`.
    """
    cluster = _cluster(devices, hosts, network, latency, flops, price, watts, picture)
    allowance = None if budget is None else parse_budget(budget)
    stores = [corpus] if isinstance(corpus, str | Path) else list(corpus)
    if stores and allowance is None and not measure:
        raise SettingsError(
            "--corpus: give a --budget, too, to learn how often it reads the text, or --measure to "
            "learn the speed on it"
        )
    store = open_store(*stores) if stores else None
    found: list[Plan] = []
    lines: dict[str, list[ClusterPlan]] = {}
    for name in [presets] if isinstance(presets, str) else presets:
        settings = _with_changes(load_preset(name, overrides), precision, checkpointing)
        settings = settings if store is None else fit_to_corpus(settings, store)
        longest = settings.model.longest_sequence
        size = settings.data.batch_size if batch_size is None else batch_size
        length = min(settings.data.max_length, longest) if max_length is None else max_length
        if size < 1 or not 8 <= length <= longest:
            raise SettingsError(
                f"{name}: batch_size {size} and max_length {length} do not fit; batch_size is at "
                f"least 1, max_length 8 to {longest} (model.max_position_embeddings)"
            )
        made, speed = make_plan(name, settings, size, length, devices), None
        if measure:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            speed = measure_speed(settings, size, length, store=store)
        text_tokens = None if store is None else store.training_tokens
        spending = None if allowance is None else spend(made, allowance, speed, text_tokens)
        made = replace(made, speed=speed, budget=spending)
        if cluster is not None:
            whole = allowance or parse_budget(settings.budget)
            made = replace(made, cluster=on_cluster(made, cluster, whole))
            lines[name] = [on_cluster(made, each, whole) for each in sizes(cluster)]
        found.append(made)
    if picture is not None:
        write_atomic(Path(picture), communication_picture(lines))
    return found


def _cluster(
    devices: int, hosts: int, network: str | None, latency: str, flops: str | None,
    price: float | None, watts: float | None, picture: str | Path | None,
) -> Cluster | None:  # fmt: skip
    """The cluster that options describe, or none."""
    if picture is not None:
        check_writable(Path(picture))
    cluster = Cluster(
        devices, hosts, None if network is None else parse_network(network),
        parse_latency(latency), None if flops is None else parse_flops(flops), price, watts,
    )  # fmt: skip
    if devices == 1 and flops is None:
        for name, value in (("price", price), ("watts", watts), ("picture", picture)):
            if value is not None:
                raise SettingsError(f"--{name}: goes with --devices and --flops")
        return None
    return cluster


def _with_changes(preset: Preset, precision: str, checkpointing: bool) -> Preset:
    changes: dict[str, Any] = {}
    if check_precision(precision) != "auto":  # else as the preset says
        changes["precision"] = precision
    if checkpointing:
        changes["activation_checkpointing"] = True
    return preset.model_copy(update=changes)
