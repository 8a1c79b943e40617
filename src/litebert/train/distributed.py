"""Several processes, one run: what `torchrun` starts, gloo on CPUs and nccl on GPUs.

Every rank computes its share of each batch; gradients and sums are added up once, after the last
part's backward pass. torch's DistributedDataParallel would add them up while the backward pass
runs, but the gradient of a shared layer is not finished before the pass is, so there is nothing to
overlap; it regroups its buckets after the first step, which changes the order of additions and with
it the last bit of a resumed run; and it averages over ranks, where these losses are divided by
counts of the whole batch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore
from torch.distributed.rendezvous import rendezvous

from litebert.base.runtime import default_device

CPU = torch.device("cpu")


@dataclass(frozen=True)
class DistributedGroup:
    """The ranks of a run, and this one's place among them."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = CPU

    @property
    def is_main(self) -> bool:
        """Whether this rank writes files and speaks."""
        return self.rank == 0

    def all_reduce_numbers(self, numbers: Sequence[float]) -> list[float]:
        """Each number summed over ranks."""
        if self.world_size == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def all_reduce(self, tensor: Tensor) -> None:
        """Sum a tensor over ranks, in place."""
        if self.world_size > 1:
            dist.all_reduce(tensor)

    def broadcast_object(self, thing: Any) -> Any:
        """What the main rank says, on every rank; plain values, as in JSON."""
        if self.world_size == 1:
            return thing
        said = list(json.dumps(thing).encode()) if self.is_main else []
        size = int(self.all_reduce_numbers([float(len(said))])[0])
        letters = torch.zeros(size, dtype=torch.uint8, device=self.device)
        if self.is_main:
            letters += torch.tensor(said, dtype=torch.uint8, device=self.device)
        dist.broadcast(letters, src=0)
        return json.loads(bytes(letters.tolist()))

    def broadcast_parameters(self, module: nn.Module) -> None:
        """Give all ranks the main rank's weights."""
        if self.world_size > 1:
            for parameter in module.parameters():
                dist.broadcast(parameter.data, src=0)


@contextmanager
def join_group() -> Iterator[DistributedGroup]:
    """The group that `torchrun` describes in the environment, or a group of one."""
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if world_size == 1:
        yield DistributedGroup(device=default_device())
        return
    device = default_device()
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    store, rank, world_size = next(rendezvous("env://"))
    # After an elastic restart the store may still hold the addresses of the processes before.
    attempt = PrefixStore(f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=attempt, rank=rank, world_size=world_size)
    try:
        yield DistributedGroup(dist.get_rank(), dist.get_world_size(), device)
    finally:
        dist.destroy_process_group()
