"""Ranks that meet in a store which others used before them."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from torch.distributed import HashStore

from litebert.train.meeting import agree


def meet(store: Any, ranks: list[int], world_size: int, timeout: float = 10.0) -> list[str]:
    names: dict[int, str] = {}

    def come(rank: int) -> None:
        names[rank] = agree(store, rank, world_size, timeout)

    threads = [threading.Thread(target=come, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [names[rank] for rank in ranks]


def test_all_agree_and_never_on_a_name_of_before() -> None:
    store = HashStore()
    first, second = meet(store, [2, 0, 1], 3), meet(store, [0, 1, 2], 3)
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] != second[0]


def test_those_who_came_before_and_are_gone_do_not_count() -> None:
    store = HashStore()
    store.set("hello-1", "of a process that was killed")
    assert len(set(meet(store, [0, 1], 2))) == 1


def test_who_is_missing_is_said() -> None:
    with pytest.raises(TimeoutError, match="ranks 1, 2 did not come"):
        agree(HashStore(), 0, 3, 0.2)
