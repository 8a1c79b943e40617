"""Two hosts on one machine: network namespaces joined by a link that can be cut, or be slow."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cluster.slow_link import MTU, SlowLink

ROOT = Path(__file__).resolve().parents[2]


def require_namespaces() -> None:
    """Skip where network namespaces cannot be made, and say so."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2 (`ip`): not tested here")
    made = subprocess.run(["ip", "netns", "add", "litebert-probe"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"network namespaces cannot be made here ({made.stderr.strip()})")
    _ip("netns", "del", "litebert-probe")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass
class Network:
    """Hosts 0 and 1, at 10.231.0.1 and 10.231.0.2, and the processes started on them."""

    name: str
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    slow: SlowLink | None = None

    def host(self, number: int) -> str:
        return f"{self.name}-{number}"

    def address(self, number: int) -> str:
        return f"10.231.0.{number + 1}"

    def interface(self, number: int) -> str:
        return f"{'' if self.slow is None else 't'}lb{self.name[-4:]}{number}"

    def start(self, number: int, *command: object, log: Path, **variables: str):
        """A process on a host, whose output goes to a file."""
        environment = {
            **os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": self.interface(number), **variables,
        }  # fmt: skip
        with log.open("w") as stream:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.host(number), *map(str, command)], text=True,
                env=environment, stdout=stream, stderr=stream, process_group=0,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def watch_the_way_out(self) -> None:
        """Give both hosts a default route to nowhere, on which whatever leaves is counted."""
        for number in (0, 1):
            host = self.host(number)
            subprocess.run(
                ["ip", "netns", "exec", host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"],
                check=False,
            )
            _ip("-n", host, "link", "add", "out", "type", "veth", "peer", "name", "sink")
            _ip("-n", host, "addr", "add", "10.232.0.1/24", "dev", "out")
            for link in ("out", "sink"):
                _ip("-n", host, "link", "set", link, "up", "arp", "off")
            _ip("-n", host, "route", "add", "default", "via", "10.232.0.2", "dev", "out")
            # What is meant for the other host has nowhere else to go when the cable is out.
            _ip("-n", host, "route", "add", "unreachable", "10.231.0.0/24", "metric", "1000")

    def packets_out(self) -> list[int]:
        """Packets that left each host for anywhere else."""
        found = []
        for number in (0, 1):
            words = ["ip", "-n", self.host(number), "-j", "-s", "link", "show", "out"]
            shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            found.append(json.loads(shown)[0]["stats64"]["tx"]["packets"])
        return found

    def cut(self, number: int = 1) -> None:
        """Pull the cable of a host."""
        _ip("-n", self.host(number), "link", "set", self.interface(number), "down")

    def mend(self, number: int = 1) -> None:
        """Put it back."""
        _ip("-n", self.host(number), "link", "set", self.interface(number), "up")

    def shape(self, bits_per_second: float, delay: float) -> None:
        """Replace the cable by one with a rate, on which every packet takes some seconds."""
        old = [self.interface(number) for number in (0, 1)]
        names = (f"t{old[0]}", f"t{old[1]}")
        self.slow = SlowLink(names, bits_per_second, delay)  # which have the interfaces' names now
        for number, name in enumerate(names):
            host = self.host(number)
            _ip("-n", host, "addr", "flush", "dev", old[number])
            _ip("link", "set", name, "netns", host)
            _ip("-n", host, "addr", "add", f"{self.address(number)}/24", "dev", name)
            _ip("-n", host, "link", "set", name, "mtu", str(MTU), "up")
        self.slow.start()

    def pids(self, number: int, text: str) -> list[int]:
        """Processes of a host whose command line has a text in it."""
        found = subprocess.run(
            ["ip", "netns", "pids", self.host(number)], capture_output=True, text=True
        ).stdout.split()
        kept = []
        for pid in map(int, found):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if text in line:
                kept.append(pid)
        return kept


@contextmanager
def two_hosts() -> Iterator[Network]:
    """Namespaces with a link between them, gone afterwards with all that runs there."""
    require_namespaces()
    network = Network(f"lb-{os.getpid()}")
    links = [network.interface(number) for number in (0, 1)]
    for number in (0, 1):
        _ip("netns", "add", network.host(number))
    try:
        _ip("link", "add", links[0], "type", "veth", "peer", "name", links[1])
        for number in (0, 1):
            host = network.host(number)
            _ip("link", "set", links[number], "netns", host)
            _ip("-n", host, "addr", "add", f"{network.address(number)}/24", "dev", links[number])
            _ip("-n", host, "link", "set", links[number], "up")
            _ip("-n", host, "link", "set", "lo", "up")
        yield network
    finally:
        for process in network.processes:
            with_children(process.pid)
            process.wait()
        if network.slow is not None:
            network.slow.close()
        for number in (0, 1):
            for pid in network.pids(number, ""):
                with_children(pid)
            subprocess.run(["ip", "netns", "del", network.host(number)], check=False)


def with_children(pid: int) -> None:
    """End a process that we started and what it started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def wait_until(condition, seconds: float, what: str) -> float:
    """Seconds until something is true; it is a failure if it is not in time."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.05)
    return time.monotonic() - began


PYTHON = sys.executable
