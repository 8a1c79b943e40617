"""Several processes, one run: what `torchrun` starts, gloo on CPUs and nccl on GPUs.

Every rank computes its share of each batch; gradients and sums are added up once, after the last
part's backward pass. torch's DistributedDataParallel would add them up while the backward pass
runs, but the gradient of a shared layer is not finished before the pass is, so there is nothing to
overlap; it regroups its buckets after the first step, which changes the order of additions and with
it the last bit of a resumed run; and it averages over ranks, where these losses are divided by
counts of the whole batch.

A rank that dies, or whose cable is cut, is noticed after the timeout at the latest, named by its
number (train/heartbeat.py), and ends the run; the last checkpoint stays.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore
from torch.distributed.rendezvous import rendezvous

from litebert.base.errors import LitebertError, LostRankError, SettingsError
from litebert.base.runtime import default_device
from litebert.base.settings import first_difference
from litebert.train.heartbeat import Heartbeat
from litebert.train.meeting import agree

CPU = torch.device("cpu")
TIMEOUT = 300.0  # seconds


@dataclass(frozen=True)
class DistributedGroup:
    """The ranks of a run, and this one's place among them."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = CPU
    heartbeat: Heartbeat | None = None

    @property
    def is_main(self) -> bool:
        """Whether this rank writes files and speaks."""
        return self.rank == 0

    def all_reduce_numbers(self, numbers: Sequence[float]) -> list[float]:
        """Each number summed over ranks."""
        if self.world_size == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        self.all_reduce(tensor)
        return tensor.tolist()

    def all_reduce(self, tensor: Tensor) -> None:
        """Sum a tensor over ranks, in place."""
        if self.world_size > 1:
            with self._together():
                dist.all_reduce(tensor)

    def broadcast(self, tensor: Tensor) -> None:
        """Give all ranks the main rank's values of a tensor, in place."""
        if self.world_size > 1:
            with self._together():
                dist.broadcast(tensor, src=0)

    def broadcast_object(self, thing: Any) -> Any:
        """What the main rank says, on every rank; plain values, as in JSON."""
        if self.world_size == 1:
            return thing
        said = list(json.dumps(thing).encode()) if self.is_main else []
        size = int(self.all_reduce_numbers([float(len(said))])[0])
        letters = torch.zeros(size, dtype=torch.uint8, device=self.device)
        if self.is_main:
            letters += torch.tensor(said, dtype=torch.uint8, device=self.device)
        self.broadcast(letters)
        return json.loads(bytes(letters.tolist()))

    def broadcast_parameters(self, module: nn.Module) -> None:
        """Give all ranks the main rank's weights."""
        for parameter in module.parameters():
            self.broadcast(parameter.data)

    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The main rank's tensors, on every rank, whatever the others have."""
        kinds = {name: [str(t.dtype), list(t.shape)] for name, t in tensors.items()}
        found: dict[str, Tensor] = {}
        for name, (dtype, shape) in self.broadcast_object(kinds).items():
            kind = getattr(torch, dtype.removeprefix("torch."))
            found[name] = (
                tensors[name].to(self.device)
                if self.is_main
                else torch.empty(shape, dtype=kind, device=self.device)
            )
            self.broadcast(found[name])
        return found

    def require_equal(self, mine: dict[str, Any]) -> None:
        """Refuse ranks that were started with other code or settings than the main one."""
        theirs = self.broadcast_object(mine)
        difference = first_difference(theirs, json.loads(json.dumps(mine)))
        (others,) = self.all_reduce_numbers([float(difference is not None)])
        if difference is not None:
            raise SettingsError(
                f"rank {self.rank}: other code or settings than rank 0 ({difference}); start all "
                "ranks with the same command and the same installation"
            )
        if others:
            raise SettingsError(
                f"{others:.0f} of {self.world_size} ranks have other code or settings than rank 0; "
                "they say which: start all ranks with the same command and the same installation"
            )

    @contextmanager
    def _together(self) -> Iterator[None]:
        """What all ranks do at once: a failure means that one of them is gone."""
        try:
            yield
        except LitebertError:
            raise
        except RuntimeError as error:  # torch's own errors of this kind are all of them
            raise self._lost(error) from None

    def _lost(self, error: RuntimeError) -> LostRankError:
        what = "another rank was lost" if self.heartbeat is None else self.heartbeat.lost()
        reason = str(error).strip().partition("\n")[0].partition(". This is")[0]
        return LostRankError(
            f"rank {self.rank}: {what} ({reason}); the last checkpoint stays: the same command "
            "resumes from it"
        )


@contextmanager
def join_group(timeout: float = TIMEOUT) -> Iterator[DistributedGroup]:
    """The group that `torchrun` describes in the environment, or a group of one."""
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if world_size == 1:
        yield DistributedGroup(device=default_device())
        return
    device = default_device()
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    else:
        _check_interface(world_size)
    backend, limit = "nccl" if device.type == "cuda" else "gloo", timedelta(seconds=timeout)
    with _meeting(timeout):
        store, rank, world_size = next(rendezvous("env://", timeout=limit))
        attempt = PrefixStore(agree(store, rank, world_size, timeout), store)
        dist.init_process_group(
            backend, store=attempt, rank=rank, world_size=world_size, timeout=limit
        )
    try:
        with Heartbeat(PrefixStore("heartbeat", attempt), rank, world_size) as heartbeat:
            yield DistributedGroup(rank, world_size, device, heartbeat)
    finally:
        with suppress(RuntimeError):  # of ranks that are gone, which was said
            dist.destroy_process_group()


@contextmanager
def _meeting(timeout: float) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError, TimeoutError) as error:
        where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        reason = str(error).strip().partition("\n")[0]
        raise SettingsError(
            f"rank {os.environ.get('RANK')}: not all {os.environ.get('WORLD_SIZE')} ranks met at "
            f"{where} within {timeout:.0f} s ({reason}); start them all, and see that every host "
            "reaches that address"
        ) from None


def _check_interface(world_size: int) -> None:
    """gloo tells others the address of the host's name: on loopback they would talk to nobody."""
    local = int(os.environ.get("LOCAL_WORLD_SIZE", str(world_size)))
    if local == world_size or os.environ.get("GLOO_SOCKET_IFNAME"):
        return
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        address = ""
    if not address or address.startswith("127."):
        links = [link for _, link in socket.if_nameindex() if link != "lo"]
        raise SettingsError(
            f"the name of this host, {name}, is {address or 'no address'}, where other hosts "
            "cannot reach it: set GLOO_SOCKET_IFNAME to the interface between the hosts (here: "
            f"{', '.join(links) or 'none but lo'})"
        )
