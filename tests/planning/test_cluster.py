"""Plans for many devices: arithmetic done again by hand, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import LitebertError
from litebert.planning.cluster import (
    Cluster,
    parse_flops,
    parse_latency,
    parse_network,
    plan_cluster,
    sizes,
)
from litebert.planning.report import table
from litebert.train.plan import plan

CLUSTER: dict[str, Any] = {
    "devices": 64, "hosts": 8, "network": "100Gbit", "flops": "400T", "batch_size": 4096,
    "max_length": 512, "budget": "125000steps",
}  # fmt: skip


def test_a_step_by_hand() -> None:
    cluster = Cluster(16, 4, network=8e9, latency=0.001, flops=1e12, price=2.0, watts=500.0)
    found = plan_cluster(
        cluster, parameters=1000_000, flops=32e12, steps=900, flops_per_second=1e12
    )
    assert found.compute == 2.0
    assert found.gradient_bytes == 4_000_000
    assert found.sent_bytes == pytest.approx(2 * 3 / 4 * 4e6)
    assert found.communication == pytest.approx(6e6 / 1e9 + 12 * 0.001)
    assert found.seconds == pytest.approx(900 * found.step)
    hours = 16 * found.seconds / 3600
    assert found.cost == pytest.approx(2 * hours)
    assert found.energy == pytest.approx(0.5 * hours)
    assert found.bytes_per_petaflop == pytest.approx(4e6 / 0.032)


def test_one_host_sends_nothing() -> None:
    found = plan_cluster(Cluster(8), parameters=10, flops=8.0, steps=1, flops_per_second=1)
    assert (found.communication, found.fraction, found.compute) == (0, 0, 1)


def test_the_papers_point_about_communication(tmp_path: Path) -> None:
    """Section 1 of the ALBERT paper: communication grows with the number of parameters."""
    picture = tmp_path / "plan.png"
    plans = plan(["albert-xxlarge", "albert-large", "bert-large"], **CLUSTER, picture=picture)
    xxlarge, large, bert = (one.cluster for one in plans)
    assert xxlarge is not None
    assert large is not None
    assert bert is not None
    assert [round(c.bytes_per_petaflop / 1e6) for c in (xxlarge, large, bert)] == [29, 17, 322]
    assert large.compute == pytest.approx(bert.compute, rel=0.05)
    assert bert.fraction > 0.5 > 0.1 > xxlarge.fraction > large.fraction
    assert picture.read_bytes().startswith(b"\x89PNG")
    labels = list(table(plans).columns[0].cells)
    assert "  communication, of a step" in labels


def test_sizes_double() -> None:
    found = sizes(Cluster(64, 8, network=1e9))
    assert [(c.devices, c.hosts) for c in found] == [(8, 1), (16, 2), (32, 4), (64, 8), (128, 16)]


def test_units() -> None:
    assert parse_network("100Gbit") == 1e11
    assert parse_network("12.5 GB/s") == 1e11
    assert parse_flops("400T") == 4e14
    assert parse_latency("10ms") == 0.01


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"devices": 60}, "60 devices on 8 hosts"),
        ({"hosts": 0}, "on 0 hosts"),
        ({"network": None}, "--network"),
        ({"network": "fast"}, "--network fast"),
        ({"flops": None}, "--flops 400T"),
        ({"flops": "0T"}, "--flops 0T"),
        ({"latency": "3"}, "--latency 3"),
        ({"budget": "2h"}, "--measure"),
        ({"devices": 1, "hosts": 1, "flops": None, "price": 3.0}, "--price"),
        ({"picture": "nowhere/at/all.png"}, "no folder"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LitebertError, match=message):
        plan(["albert-tiny"], **{**CLUSTER, "max_length": 128, **changes})
