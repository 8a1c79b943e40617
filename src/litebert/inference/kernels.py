"""Matrix products with weights that were packed once: fp32, bf16 or int8, by the CPU at hand.

At the sizes of serving, tens of tokens, rearranging the weights costs as much as the product, so it
is done once. A shared layer is packed once for all its depths. docs/log/inference.md has the
measurements behind the choices:

fp32   oneDNN's blocked layout, which also fuses the activation or the residual sum
bf16   the same, where the CPU multiplies bfloat16 itself (AVX512-BF16, AMX)
int8   weights by output channel, symmetric; activations by the range of each call. FBGEMM; oneDNN
       where there is AMX. Without VNNI two products are added in 16 bits, which 8-bit activations
       can overflow, so activations take 7 bits there (`reduce_range`).

On a GPU products stay torch's own, in fp32 or bf16.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from litebert.base.errors import SettingsError
from litebert.base.runtime import has_fast_bf16
from litebert.model.efficient import activate

EnginePrecision = Literal["auto", "fp32", "bf16", "int8"]
Resolved = Literal["fp32", "bf16", "int8"]
_ALGORITHMS = {"gelu": ("gelu", "none"), "gelu_new": ("gelu", "tanh"), "relu": ("relu", "")}


class PackedLinear(Protocol):
    """A linear layer whose weights are as the kernel wants them."""

    def __call__(self, x: Tensor) -> Tensor:
        """The product and the bias, activated where the layer was packed with an activation."""
        ...

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """The product, the bias and a residual; the activation is not applied."""
        ...


Pack = Callable[[nn.Linear, str | None], PackedLinear]


def resolve_engine_precision(precision: str, device: torch.device) -> Resolved:
    """What a precision means on this machine; "auto" is bf16 where the hardware has it, or fp32."""
    if precision == "auto":
        return "bf16" if has_fast_bf16(device) else "fp32"
    if precision not in ("fp32", "bf16", "int8"):
        raise SettingsError(f"precision {precision!r}: choose auto, fp32, bf16 or int8")
    if precision == "bf16" and not has_fast_bf16(device):
        raise SettingsError(
            "precision bf16: this machine does not multiply bfloat16 itself, so it would be "
            "slower than fp32; choose fp32 or int8"
        )
    if precision == "int8":
        int8_engine(device)
    return precision  # type: ignore[return-value]


def int8_engine(device: torch.device) -> str:
    """The library that multiplies int8 here: oneDNN uses AMX, FBGEMM is faster without it."""
    known = engines()
    if device.type != "cpu" or not {"fbgemm", "onednn"} & known:
        raise SettingsError(
            "precision int8: needs an x86 CPU and a torch built with FBGEMM or oneDNN; choose fp32"
        )
    if "onednn" in known and (torch.cpu._is_amx_tile_supported() or "fbgemm" not in known):
        return "onednn"
    return "fbgemm"


def engines() -> set[str]:
    """The int8 libraries that torch was built with."""
    return set(torch.backends.quantized.supported_engines)


def has_vnni() -> bool:
    """Whether the CPU adds products of bytes in 32 bits; if not, in 16, which can overflow."""
    if torch.cpu._is_vnni_supported():
        return True
    facts = Path("/proc/cpuinfo")
    return facts.exists() and "avx_vnni" in facts.read_text(errors="replace").split()


def packer(precision: Resolved, device: torch.device) -> Pack:
    """What packs the linear layers of an encoder."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        return lambda linear, activation: _Plain(linear, activation, dtype)
    if precision == "int8":
        engine, reduce_range = int8_engine(device), not has_vnni()
        return lambda linear, activation: _Int8(linear, activation, engine, reduce_range)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    return lambda linear, activation: _Blocked(linear, activation, dtype)


class _Plain:
    """torch's own product: for GPUs, and builds without oneDNN."""

    def __init__(self, linear: nn.Linear, activation: str | None, dtype: torch.dtype) -> None:
        self._weight, self._bias = linear.weight.detach().to(dtype), linear.bias.detach().to(dtype)
        self._activation = activation

    def __call__(self, x: Tensor) -> Tensor:
        y = nn.functional.linear(x.to(self._weight.dtype), self._weight, self._bias)
        return y if self._activation is None else activate(y, self._activation)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return nn.functional.linear(x.to(self._weight.dtype), self._weight, self._bias) + residual


class _Blocked:
    """oneDNN's blocked weights in fp32 or bf16."""

    def __init__(self, linear: nn.Linear, activation: str | None, dtype: torch.dtype) -> None:
        operators = torch.ops.mkldnn
        self._weight = operators._reorder_linear_weight(linear.weight.detach().to(dtype))
        self._bias = linear.bias.detach().to(dtype, copy=True)
        self._dtype = dtype
        self._fused = ("none", "") if activation is None else _ALGORITHMS[activation]
        self._product = operators._linear_pointwise.default
        self._sum = operators._linear_pointwise.binary

    def __call__(self, x: Tensor) -> Tensor:
        name, algorithm = self._fused
        rows = len(x)
        x = _on_grid(x if x.dtype == self._dtype else x.to(self._dtype))
        y = self._product(x, self._weight, self._bias, name, [], algorithm)
        return y if len(y) == rows else y[:rows]

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        if len(x) == grid(len(x)):
            return self._sum(x, residual, self._weight, self._bias, "add")
        y = self._product(_on_grid(x), self._weight, self._bias, "none", [], "")
        return y[: len(residual)].add_(residual)


class _Int8:
    """Weights as signed bytes with a scale for each output; activations as bytes of this call."""

    def __init__(
        self, linear: nn.Linear, activation: str | None, engine: str, reduce_range: bool
    ) -> None:
        with quantized_engine(engine):
            self._packed = _packed_bytes(linear.weight.detach(), linear.bias.detach())
        self._reduce_range, self._activation = reduce_range, activation
        self._by_shape = engine == "onednn"
        self._product = torch.ops.quantized.linear_dynamic.default

    def __call__(self, x: Tensor) -> Tensor:
        rows = len(x)
        if self._by_shape:
            x = _on_grid(x)
        y = self._product(x, self._packed, self._reduce_range)
        if self._activation is not None:
            _activate_in_place(y, self._activation)
        return y if len(y) == rows else y[:rows]

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self(x).add_(residual)


def grid(rows: int) -> int:
    """The next number of rows that oneDNN is asked for.

    It compiles a kernel for every shape, which takes as long as ten products of a small model; with
    batches that change at every step there would be no end of it.
    """
    step = 1 if rows <= 32 else 8 if rows <= 128 else 32 if rows <= 512 else 128
    return -(-rows // step) * step


def _on_grid(x: Tensor) -> Tensor:
    more = grid(len(x)) - len(x)
    return nn.functional.pad(x, (0, 0, 0, more)) if more else x


def channel_scales(weight_OI: Tensor) -> Tensor:
    """The step of each output's bytes: its largest weight is 127."""
    return weight_OI.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny * 127) / 127


def _packed_bytes(weight_OI: Tensor, bias_O: Tensor) -> Any:
    scales = channel_scales(weight_OI).double()
    bytes_OI = torch.round(weight_OI / scales[:, None]).clamp_(-127, 127).to(torch.int8)
    zeros = torch.zeros(len(scales), dtype=torch.long)
    with warnings.catch_warnings():  # torch means to replace its quantized tensors some day
        warnings.simplefilter("ignore")
        quantized = torch._make_per_channel_quantized_tensor(bytes_OI, scales, zeros, 0)
        return torch.ops.quantized.linear_prepack(quantized, bias_O)


@contextmanager
def quantized_engine(name: str) -> Any:
    """Pack for this library; what is packed remembers it."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = name
    try:
        yield
    finally:
        torch.backends.quantized.engine = before


def _activate_in_place(x: Tensor, name: str) -> None:
    """Both forms of GELU as erf: they differ by 5e-4 at most, far less than a step of a byte, and
    torch's tanh takes three times as long, nearly as long as the product before it.
    """
    x.relu_() if name == "relu" else torch.ops.aten.gelu_(x)
