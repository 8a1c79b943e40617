"""One run on many devices: what a step computes, what it sends, and what the whole run costs.

    compute        = training FLOPs of the batch / (devices x FLOP/s of one)
    gradients      = 4 bytes x trained parameters: summed over all ranks once a step, in fp32
    sent by a host = 2 (h - 1) / h x gradients, with h hosts: a ring, half to add up, half to tell
    communication  = sent by a host / speed of its network + latency x rounds

Nothing overlaps: the gradient of a shared layer is finished only when the backward pass is, so the
sum begins after it (train/distributed.py). Within a host the sum is taken to be free.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from litebert.base.errors import SettingsError

GRADIENT_BYTES = 4
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_NUMBER = r"\s*(\d+(?:\.\d+)?)\s*"


@dataclass(frozen=True)
class Cluster:
    """The devices of a run and what joins them."""

    devices: int = 1
    hosts: int = 1
    network: float | None = None  # bits a second between two hosts, each way
    latency: float = 50e-6  # seconds from one host to another
    flops: float | None = None  # FLOP/s that one device sustains, not what its maker promises
    price: float | None = None  # of a device-hour
    watts: float | None = None  # of a device with its share of the host

    def __post_init__(self) -> None:
        if not 1 <= self.hosts <= self.devices or self.devices % self.hosts:
            raise SettingsError(
                f"{self.devices} devices on {self.hosts} hosts: every host must have as many"
            )
        if self.hosts > 1 and self.network is None:
            raise SettingsError("--hosts: say how fast the network between them is (--network)")


@dataclass(frozen=True)
class ClusterPlan:
    """A step and a run on a cluster. Times are seconds, energy is kWh."""

    devices: int
    hosts: int
    compute: float
    communication: float
    gradient_bytes: int
    sent_bytes: float  # by a host, a step
    bytes_per_petaflop: float  # of gradients, by compute of the whole step
    steps: float
    seconds: float
    cost: float | None
    energy: float | None

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return self.compute + self.communication

    @property
    def fraction(self) -> float:
        """Of a step that is communication."""
        return self.communication / self.step


def plan_cluster(
    cluster: Cluster, *, parameters: int, flops: float, steps: float, flops_per_second: float
) -> ClusterPlan:
    """The arithmetic for `parameters` that are trained and the training FLOPs of a step."""
    gradients, hosts = GRADIENT_BYTES * parameters, cluster.hosts
    sent, rounds = 2 * (hosts - 1) / hosts * gradients, 2 * (hosts - 1)
    communication = 0.0
    if hosts > 1 and cluster.network:
        # One ring for the gradients, one before it for the few counts of the batch.
        communication = 8 * sent / cluster.network + 2 * rounds * cluster.latency
    compute = flops / (cluster.devices * flops_per_second)
    seconds = steps * (compute + communication)
    hours = cluster.devices * seconds / 3600
    return ClusterPlan(
        devices=cluster.devices, hosts=hosts, compute=compute, communication=communication,
        gradient_bytes=gradients, sent_bytes=sent, bytes_per_petaflop=gradients / (flops / 1e15),
        steps=steps, seconds=seconds,
        cost=None if cluster.price is None else hours * cluster.price,
        energy=None if cluster.watts is None else hours * cluster.watts / 1000,
    )  # fmt: skip


def sizes(cluster: Cluster) -> list[Cluster]:
    """The same cluster with one host, two, four, up to twice as many as it has."""
    each, found, hosts = cluster.devices // cluster.hosts, [], 1
    while hosts <= 2 * cluster.hosts:
        found.append(replace(cluster, devices=each * hosts, hosts=hosts))
        hosts *= 2
    return found


def parse_flops(text: str) -> float:
    """`400T` as 4e14."""
    match = re.fullmatch(_NUMBER + "([kMGTP]?)(?:FLOPS?|FLOP/s)?", text)
    if match is None or not float(match[1]):
        raise SettingsError(f"--flops {text}: write what a device sustains a second, as 400T")
    return float(match[1]) * _SCALES[match[2]]


def parse_network(text: str) -> float:
    """`100Gbit` as 1e11 bits a second."""
    match = re.fullmatch(_NUMBER + "([kMGT]?)(bit|B)(?:/s)?", text)
    if match is None or not float(match[1]):
        raise SettingsError(f"--network {text}: write a speed, as 100Gbit or 12.5GB")
    return float(match[1]) * _SCALES[match[2]] * (8 if match[3] == "B" else 1)


def parse_latency(text: str) -> float:
    """`10ms` as 0.01."""
    match = re.fullmatch(_NUMBER + "(s|ms|us)", text)
    if match is None:
        raise SettingsError(f"--latency {text}: write a time, as 50us or 10ms")
    return float(match[1]) * _SECONDS[match[2]]
