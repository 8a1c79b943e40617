"""A slow cable between two hosts, in user space: packets wait their turn, and then the delay.

Kernels without netem (those of small virtual machines) cannot delay packets by themselves. Each
host gets a TUN device; a thread carries packets from one to the other at a rate.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import threading
import time
from collections import deque

IFF_TUN, IFF_NO_PI, TUNSETIFF = 0x0001, 0x1000, 0x400454CA
LARGEST = 65536
MTU = 9000  # bytes: so that a thread of Python has few packets to carry


def open_tun(name: str) -> int:
    """The end of a new TUN device that a program holds."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


class SlowLink(threading.Thread):
    """Carries packets between two TUN devices, both ways, until it is closed."""

    def __init__(self, names: tuple[str, str], bits_per_second: float, delay: float) -> None:
        super().__init__(daemon=True)
        self.ends = [open_tun(name) for name in names]
        self.rate, self.delay = bits_per_second, delay
        self._closed = threading.Event()

    def close(self) -> None:
        """Pull the cable."""
        self._closed.set()
        self.join()
        for end in self.ends:
            os.close(end)

    def run(self) -> None:
        waiting: list[deque[tuple[float, bytes]]] = [deque(), deque()]
        free = [0.0, 0.0]  # when the last packet of a side has left
        while not self._closed.is_set():
            now = time.monotonic()
            for side, queue in enumerate(waiting):
                while queue and queue[0][0] <= now:
                    self._deliver(1 - side, queue.popleft()[1])
            due = min((queue[0][0] for queue in waiting if queue), default=now + 0.1)
            ready, _, _ = select.select(self.ends, [], [], max(min(due - now, 0.1), 0.0))
            for end in ready:
                side, packet = self.ends.index(end), os.read(end, LARGEST)
                free[side] = max(free[side], time.monotonic()) + 8 * len(packet) / self.rate
                waiting[side].append((free[side] + self.delay, packet))

    def _deliver(self, side: int, packet: bytes) -> None:
        try:
            os.write(self.ends[side], packet)
        except OSError:  # the host is gone, or its queue is full: packets get lost
            return
