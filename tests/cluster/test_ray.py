"""`prepare --on ray`: the same bytes as one machine, whatever is killed or cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed; run `make cluster`")

from litebert.base.ray_tasks import SETTINGS
from tests.cluster.network import PYTHON, Network, two_hosts, wait_until
from tests.corpus.stores import make_documents, write_wordpiece
from tests.remote.corpora import assert_equal_folders
from tests.remote.s3 import BUCKET, environment, s3_client, s3_server

pytestmark = pytest.mark.cluster

PARTS = 8
RECOVERY = 60.0  # seconds, at most
# A head finds the token that an earlier cluster left in the home folder, and other nodes do not.
AUTHENTICATION = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "5eed" * 16}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some megabytes in a few files, and the store that one machine makes of them."""
    folder = tmp_path_factory.mktemp("text")
    (folder / "raw").mkdir()
    lines = [" ".join(document) for document in make_documents(1, 500, (3, 9), (6, 14))]
    for number in range(6):
        rows = (f"{line} {number} {copy}" for copy in range(48) for line in lines)
        (folder / "raw" / f"{number}.txt").write_text("\n\n".join(rows))
    write_wordpiece(folder / "tokenizer")
    run(folder, folder / "whole")
    return folder


def run(folder: Path, out: object, *options: object, code: int = 0) -> str:
    command = [sys.executable, "-m", "litebert", *arguments(folder, out), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr[-3000:]
    return done.stdout + done.stderr


def arguments(folder: Path, out: object) -> list[str]:
    tokenizer = folder / "tokenizer"
    return ["prepare", str(folder / "raw"), "--tokenizer", str(tokenizer), "--out", str(out)]


def test_on_this_machine(text: Path, tmp_path: Path) -> None:
    run(text, tmp_path / "out", "--on", "ray", "--parts", 3)
    assert_equal_folders(tmp_path / "out", text / "whole")
    assert not (tmp_path / "out.partial").exists()


def test_to_an_object_store(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path / "cache"))
    with s3_server() as port:
        for name, value in environment(port).items():
            monkeypatch.setenv(name, value)
        s3 = s3_client(port)
        s3.create_bucket(Bucket=BUCKET)
        run(text, f"s3://{BUCKET}/out", "--on", "ray", "--parts", 3)
        for entry in s3.list_objects_v2(Bucket=BUCKET, Prefix="out/")["Contents"]:
            path = tmp_path / entry["Key"]
            path.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file(BUCKET, entry["Key"], str(path))
    assert_equal_folders(tmp_path / "out", text / "whole")


def test_nobody_at_the_address(text: Path, tmp_path: Path) -> None:
    said = run(text, tmp_path / "out", "--on", "ray:127.0.0.1:9", code=2)
    assert "--on ray:127.0.0.1:9: the Ray cluster cannot be joined" in said
    assert not (tmp_path / "out").exists()


def start_cluster(network: Network, folder: Path) -> None:
    """A node of one processor on each host."""
    ray = Path(PYTHON).with_name("ray")
    # Without this file a head asks the usual addresses which company's cloud it is in.
    (folder / "ray_bootstrap_config.yaml").touch()
    for number in (0, 1):
        role = (
            ["--head", "--port", "6379", "--temp-dir", f"/tmp/ray-{os.getpid()}",
             "--include-dashboard", "false"]
            if number == 0
            else ["--address", f"{network.address(0)}:6379"]
        )  # fmt: skip
        network.start(
            number, ray, "start", *role, "--node-ip-address", network.address(number),
            "--num-cpus", "1", "--block", log=folder / f"ray-{number}.log",
            **SETTINGS, **AUTHENTICATION, HOME=str(folder),
        )  # fmt: skip
        wait_until(lambda n=number: network.pids(n, "raylet/raylet"), 90, f"node {number}")
    time.sleep(3)


def strike(network: Network, kind: str) -> None:
    if kind == "worker":
        for pid in network.pids(1, "ray::_checked"):
            os.kill(pid, signal.SIGKILL)
    elif kind == "node":
        for pid in network.pids(1, "raylet/raylet"):
            os.kill(pid, signal.SIGKILL)
    elif kind == "cable":
        network.cut()


@pytest.mark.parametrize("kind", ["nothing", "worker", "node", "cable"])
def test_over_two_hosts(kind: str, text: Path, tmp_path: Path) -> None:
    with two_hosts() as network:
        network.watch_the_way_out()
        start_cluster(network, tmp_path)
        out = tmp_path / "out"
        process = network.start(
            0, PYTHON, "-m", "litebert", *arguments(text, out), "--on",
            f"ray:{network.address(0)}:6379", "--parts", PARTS, log=tmp_path / "prepare.log",
            **AUTHENTICATION,
        )  # fmt: skip
        wait_until(lambda: network.pids(1, "ray::_checked"), 90, "a task on host 1")
        began = time.monotonic()
        strike(network, kind)
        log = tmp_path / "prepare.log"
        if kind != "nothing":
            noticed = lambda: "will be retried" in log.read_text() or process.poll() is not None  # noqa: E731
            wait_until(noticed, RECOVERY, "the lost task")
            print(f"{kind}: noticed {time.monotonic() - began:.1f} s after the fault")
        wait_until(lambda: process.poll() is not None, 600, "the end")
        print(f"{kind}: ended {time.monotonic() - began:.1f} s after the fault")
        assert process.returncode == 0, (tmp_path / "prepare.log").read_text()
        assert network.packets_out() == [0, 0]
    assert_equal_folders(out, text / "whole")
