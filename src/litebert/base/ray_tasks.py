"""Independent work on a Ray cluster: a task a piece of work, retried when its worker is lost.

`--on ray` starts Ray on this machine, `--on ray:ADDRESS` joins a cluster that is there. Tasks run
at least once: a node that is cut off goes on while another one does its work again, so what a task
writes must be the same whoever writes it, and whole or not there.

Ray's own settings are made before it is imported: on defaults a cut cable is noticed after seven
minutes, and usage statistics are sent to its makers. Nodes that are started by hand need the same
variables (docs/scale.md).
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from litebert.base.errors import LitebertError, MissingExtraError, SettingsError
from litebert.base.processes import source_checksum

RETRIES = 8
SECONDS_TO_JOIN, SECONDS_TO_ANSWER = 30, 10
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_REPORT_URL": "http://127.0.0.1:9",  # `ray start` would report that it is off
    "RAY_grpc_client_keepalive_time_ms": "10000",
    "RAY_grpc_client_keepalive_timeout_ms": "10000",
    "RAY_health_check_period_ms": "2000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "4",
}


def parse_on(text: str) -> str | None:
    """The address of `ray:ADDRESS`; None for `ray`, a cluster of this machine alone."""
    match = re.fullmatch(r"ray(?::(.+))?", text)
    if match is None:
        raise SettingsError(f"--on {text}: write ray, or ray:ADDRESS as in ray:10.0.0.1:6379")
    return match[1]


class RayCluster:
    """A cluster that was joined."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    @property
    def cpus(self) -> int:
        """Processors of all nodes together."""
        return int(self._ray.cluster_resources().get("CPU", 1))

    @property
    def gpus(self) -> int:
        """GPUs of all nodes together."""
        return int(self._ray.cluster_resources().get("GPU", 0))

    def completed(
        self, function: Callable[..., Any], arguments: Sequence[tuple], *, gpus: float = 0
    ) -> Iterator[tuple[int, Any]]:
        """Call a function with each of several arguments; results with their numbers, as they come.

        A worker, node or link that is lost has its tasks done again elsewhere; an error of ours
        ends all of it.
        """
        ray = self._ray
        task = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=gpus)(_checked)
        mine = source_checksum()
        pending = {task.remote(mine, function, *a): n for n, a in enumerate(arguments)}
        try:
            while pending:
                (done,), _ = ray.wait(list(pending), num_returns=1)
                yield pending.pop(done), self._result(done)
        finally:
            for left in pending:
                ray.cancel(left, force=True)

    def _result(self, done: Any) -> Any:
        try:
            return self._ray.get(done)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, LitebertError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError as error:
            reason = str(error).strip().partition("\n")[0]
            raise LitebertError(
                f"a task was lost {RETRIES + 1} times on the Ray cluster ({reason}); what is "
                "finished is kept: run the same command to resume"
            ) from None


def _checked(code: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """A task, on whichever node; one with other code would make something else."""
    if source_checksum() != code:
        raise SettingsError(
            f"{socket.gethostname()}: has another litebert installed than this machine; install "
            "the same on all nodes"
        )
    return function(*arguments)


def require_cluster(on: str) -> None:
    """Say before anything is written that Ray is missing, or that nobody is at the address."""
    address, ray = parse_on(on), _import_ray()
    if address is not None and not ray.is_initialized():
        _require_answer(on, address)


def _import_ray() -> Any:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtraError("ray", "ray", "--on ray") from None
    return ray


@contextmanager
def ray_cluster(on: str) -> Iterator[RayCluster]:
    """The cluster that `--on` names."""
    address, ray = parse_on(on), _import_ray()
    if ray.is_initialized():  # by the caller's own program
        yield RayCluster(ray)
        return
    os.environ.setdefault("RAY_raylet_start_wait_time_s", str(SECONDS_TO_JOIN))
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", str(SECONDS_TO_JOIN))
    options = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": False}
    if address is not None:
        _require_answer(on, address)
        options = {**options, "address": address}
        del options["include_dashboard"]
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise SettingsError(f"--on {on}: the Ray cluster cannot be joined ({reason})") from None
    try:
        yield RayCluster(ray)
    finally:
        ray.shutdown()


def _require_answer(on: str, address: str) -> None:
    """Ray itself waits for good at an address where nobody is."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        if address in ("auto", "local"):
            return
        raise SettingsError(f"--on {on}: write the port too, as in ray:10.0.0.1:6379")
    deadline = time.monotonic() + SECONDS_TO_ANSWER
    while True:
        try:
            socket.create_connection((host, int(port)), SECONDS_TO_ANSWER).close()
            return
        except OSError as error:
            if time.monotonic() > deadline or isinstance(error, socket.gaierror):
                raise SettingsError(
                    f"--on {on}: the Ray cluster cannot be joined ({error}); see that `ray start` "
                    "runs there"
                ) from None
        time.sleep(1)
