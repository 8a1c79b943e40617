"""torchrun over two hosts: a rank killed, the cable out for ten seconds, the cable out for good."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.cluster.network import PYTHON, Network, two_hosts, wait_until
from tests.train.runs import assert_equal_endings, write_store

pytestmark = pytest.mark.cluster

STEPS, TIMEOUT = 240, 20.0
SETTINGS = (
    "model.hidden_size=32", "model.embedding_size=16", "model.num_attention_heads=2",
    "model.intermediate_size=64", "data.max_length=32", "data.batch_size=8", "log.every=10",
    "checkpoint.every=40", "precision=fp32", f"distributed.timeout={TIMEOUT}",
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    with two_hosts() as network:
        start(network, corpus, folder)
        finish(network, folder)
    return folder / "run"


def start(network: Network, corpus: Path, folder: Path, restarts: int = 3, **variables: str):
    """A run with a rank on each host."""
    folder.mkdir(exist_ok=True)
    options = [word for setting in SETTINGS for word in ("--set", setting)]
    for number in (0, 1):
        network.start(
            number, PYTHON, "-m", "torch.distributed.run", "--nnodes", 2, "--nproc-per-node", 1,
            "--max-restarts", restarts, "--rdzv-backend", "c10d", "--rdzv-id", "run",
            "--rdzv-endpoint", f"{network.address(0)}:29400",
            "--rdzv-conf", f"is_host={int(number == 0)},last_call_timeout=2",
            "--local-addr", network.address(number), "--monitor-interval", 0.2,
            "-m", "litebert", "pretrain", "albert-tiny", "--corpus", corpus,
            "--out", folder / "run", "--budget", f"{STEPS}steps", *options,
            log=folder / f"host-{number}.log", **variables,
        )  # fmt: skip


def finish(network: Network, folder: Path, seconds: float = 240) -> None:
    ended = lambda: all(process.poll() is not None for process in network.processes)  # noqa: E731
    wait_until(ended, seconds, "the end of the run")
    codes = [process.returncode for process in network.processes]
    assert codes == [0, 0], logs(folder)


def has_ended(pid: int) -> bool:
    """Whether a rank has; torchrun, cut off from the rendezvous, is late to ask for its code."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def logs(folder: Path) -> str:
    return "\n".join(path.read_text()[-3000:] for path in sorted(folder.glob("*.log")))


def step(folder: Path) -> int:
    """The step of the last line of metrics."""
    path = folder / "run" / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    try:
        return json.loads(lines[-1])["step"] if lines else 0
    except json.JSONDecodeError:
        return 0


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_is_replaced(
    rank: int, corpus: Path, undisturbed: Path, tmp_path: Path
) -> None:
    with two_hosts() as network:
        start(network, corpus, tmp_path)
        wait_until(lambda: step(tmp_path) >= 100, 240, "step 100")
        (pid,) = network.pids(rank, "-u -m litebert")
        os.kill(pid, signal.SIGKILL)
        finish(network, tmp_path)
    assert "resumes from step" in logs(tmp_path)
    assert_equal_endings(tmp_path / "run", undisturbed)


def test_ten_seconds_without_a_cable_are_survived(
    corpus: Path, undisturbed: Path, tmp_path: Path
) -> None:
    with two_hosts() as network:
        start(network, corpus, tmp_path)
        wait_until(lambda: step(tmp_path) >= 100, 240, "step 100")
        network.cut()
        time.sleep(10)
        network.mend()
        finish(network, tmp_path)
    assert_equal_endings(tmp_path / "run", undisturbed)


def test_without_a_cable_for_good_the_run_ends_and_says_why(
    corpus: Path, undisturbed: Path, tmp_path: Path
) -> None:
    with two_hosts() as network:
        start(network, corpus, tmp_path, restarts=0)
        wait_until(lambda: step(tmp_path) >= 100, 240, "step 100")
        ranks = [network.pids(number, "-u -m litebert") for number in (0, 1)]
        network.cut()
        for number in (0, 1):
            gone = lambda n=number: has_ended(ranks[n][0])  # noqa: E731
            wait_until(gone, TIMEOUT + 10, f"the end of rank {number}")
        first, second = (
            (tmp_path / f"host-{n}.log").read_text().replace("\n", " ") for n in (0, 1)
        )
    assert "rank 0: rank 1 of 2 was lost" in first
    assert "rank 1: the host at 10.231.0.1:" in second or "rank 1: rank 0 of 2" in second
    for said in (first, second):
        assert "the same command resumes from it" in said
    again = tmp_path / "again"
    with two_hosts() as network:
        again.mkdir()
        (tmp_path / "run").rename(again / "run")
        start(network, corpus, again)
        finish(network, again)
    assert_equal_endings(again / "run", undisturbed)


def test_a_host_name_on_loopback_is_said(corpus: Path, tmp_path: Path) -> None:
    with two_hosts() as network:
        start(network, corpus, tmp_path, restarts=0, GLOO_SOCKET_IFNAME="")
        wait_until(lambda: network.processes[0].poll() is not None, 120, "the end")
    assert "set GLOO_SOCKET_IFNAME to the interface" in logs(tmp_path).replace("\n", " ")


def test_other_settings_on_a_host_are_said(corpus: Path, tmp_path: Path) -> None:
    with two_hosts() as network:
        global SETTINGS
        before = SETTINGS
        try:
            for number, seed in ((0, 1), (1, 2)):
                SETTINGS = (*before, f"seed={seed}")
                _start_one(network, number, corpus, tmp_path)
        finally:
            SETTINGS = before
        wait_until(
            lambda: all(p.poll() is not None for p in network.processes), 120, "the end"
        )  # fmt: skip
    assert "rank 1: other code or settings than rank 0 (settings.seed" in logs(tmp_path)


def _start_one(network: Network, number: int, corpus: Path, folder: Path) -> None:
    """A rank by itself, as Slurm would start it: its place is in the environment."""
    options = [word for setting in SETTINGS for word in ("--set", setting)]
    network.start(
        number, PYTHON, "-m", "litebert", "pretrain", "albert-tiny", "--corpus", corpus,
        "--out", folder / "run", "--budget", "5steps", *options,
        log=folder / f"host-{number}.log", RANK=str(number), WORLD_SIZE="2",
        LOCAL_WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR=network.address(0), MASTER_PORT="29411",
    )  # fmt: skip
