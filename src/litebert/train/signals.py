"""Ctrl-C and SIGTERM as a question that a loop asks between steps."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = (
    b"\nlitebert: stopping after this step, then saving; once more stops at once, and loses what "
    b"came after the last checkpoint\n"
)


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Something to ask whether a signal came.

    A second one, of someone who waits, is answered and lets the save finish; the third interrupts
    at once.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set  # signals belong to the main thread
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def note(number: int, frame: FrameType | None) -> None:
        if not asked.is_set():
            asked.set()
            return
        os.write(2, PATIENCE)  # not print, which may be at work in this very moment
        for each in SIGNALS:
            signal.signal(each, signal.default_int_handler)

    for number in SIGNALS:
        signal.signal(number, note)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
