"""The process pool: results in order and as they come, and no worker that outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from litebert.base.errors import LitebertError
from litebert.base.processes import ProcessPool, cpu_count

_given = ""


def remember(text: str) -> None:
    global _given
    _given = text


def recall(number: int) -> tuple[str, int]:
    return _given, number


def signals_of_worker(_: int) -> set[signal.Signals]:
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())


def end_badly(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(number: int) -> None:
    raise LitebertError(f"not {number}")


def test_results_in_order_and_as_they_come() -> None:
    with ProcessPool(2, remember, ("hello",)) as pool:
        pool.start()
        assert pool.map(recall, range(5)) == [("hello", number) for number in range(5)]
        for number in range(6):
            pool.submit(recall, number)
        some = [number for _, number in pool.completed(pending=2)]
        assert len(some) >= 4
        assert sorted(some + [number for _, number in pool.completed()]) == list(range(6))
        assert signal.SIGINT in pool.map(signals_of_worker, [0])[0]


def test_an_error_of_a_worker_and_a_worker_that_is_killed() -> None:
    with ProcessPool(1) as pool, pytest.raises(LitebertError, match="not 3"):
        pool.map(refuse, [3])
    with ProcessPool(1) as pool, pytest.raises(LitebertError, match="same command to resume"):
        pool.map(end_badly, [0])


def stop_while_working() -> None:
    with ProcessPool(1) as pool:
        pool.submit(time.sleep, 60)
        raise KeyboardInterrupt


def test_an_exception_ends_the_workers_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        stop_while_working()
    assert time.monotonic() - began < 20


SCRIPT = """
import time
from litebert.base.processes import ProcessPool
if __name__ == "__main__":
    with ProcessPool(2) as pool:
        pool.map(abs, [1, 2])
        print("ready", flush=True)
        pool.submit(time.sleep, 60)
        list(pool.completed())
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
        process.stdout.read()  # ends when every worker has closed it


FLAT = """
import sys
import litebert
print("runs", flush=True)
from litebert.base.processes import ProcessPool
with ProcessPool(2) as pool:
    print(pool.map(abs, [-1, -2, 3]))
"""


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(FLAT)
    for arguments in ([str(tmp_path / "script.py")], ["-m", "script"], ["-c", FLAT]):
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, cwd=tmp_path, check=True
        )
        assert done.stdout == "runs\n[1, 2, 3]\n"


def test_there_is_a_processor() -> None:
    assert 1 <= cpu_count() <= (os.cpu_count() or 1)
