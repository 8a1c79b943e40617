"""Ctrl-C: once asks, twice is answered and still saves, three times interrupts."""

from __future__ import annotations

import os
import signal

import pytest

from litebert.train.signals import SIGNALS, stop_requests


@pytest.mark.parametrize("number", SIGNALS)
def test_the_second_signal_lets_the_save_finish(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    saved = False
    with stop_requests() as should_stop:
        assert not should_stop()
        os.kill(os.getpid(), number)
        assert should_stop()
        assert capfd.readouterr().err == ""
        os.kill(os.getpid(), number)
        saved = True
        assert "loses what came after the last checkpoint" in capfd.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert saved
    assert [signal.getsignal(each) for each in SIGNALS] == before
