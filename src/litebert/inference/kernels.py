"""Matrix products with weights that were packed once: fp32, bf16 or int8, by the CPU at hand.

At the sizes of serving, tens of tokens, rearranging the weights costs as much as the product, so it
is done once. A shared layer is packed once for all its depths. docs/log/inference.md has the
measurements behind the choices:

fp32   oneDNN's blocked layout, which also fuses the activation or the residual sum; small weights
       as BLAS takes them fastest where the CPU has no AVX-512, as oneDNN has more to do around
bf16   the same, where that is the faster one (AMX; AVX512-BF16 of AMD's)
int8   weights by output channel, symmetric; activations by the range of each call. FBGEMM; for
       large products oneDNN where there is VNNI or AMX. Without, two products are added in 16
       bits, which 8-bit activations can overflow, so they take 7 bits there (`reduce_range`).

On a GPU products stay torch's own, in fp32 or bf16.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from litebert.base.errors import SettingsError
from litebert.base.runtime import CPU_FACTS, has_fast_bf16, kernel_rows, onednn_is_safe

Resolved = Literal["fp32", "bf16", "int8"]
MANY_PRODUCTS = 30_000_000  # multiplications from which on oneDNN's int8 product is the faster one
MANY_ROWS = 64  # and it compiles a kernel for every number of rows: not for small ones
SMALL_WEIGHT = 2**19  # numbers; what is around oneDNN's product takes longer than packing gains
NEVER = 2**31
_FUSED = {"gelu": ("gelu", "none"), "gelu_new": ("gelu", "tanh"), "relu": ("relu", "")}


class PackedLinear(nn.Module):
    """A linear layer whose weights are as the kernel wants them. TorchScript compiles it."""

    def forward(self, x: Tensor) -> Tensor:
        """The product and the bias, activated where the layer was packed with an activation."""
        raise NotImplementedError

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """The product, the bias and a residual; without an activation."""
        raise NotImplementedError


Pack = Callable[[nn.Linear, str | None], PackedLinear]


def resolve_engine_precision(precision: str, device: torch.device) -> Resolved:
    """What a precision means on this machine; "auto" is bf16 where it is faster, or fp32."""
    is_fast = has_fast_bf16(device)  # asked first in any case: it keeps oneDNN from a broken AMX
    if precision == "auto":
        return "bf16" if is_fast else "fp32"
    if precision not in ("fp32", "bf16", "int8"):
        raise SettingsError(f"precision {precision!r}: choose auto, fp32, bf16 or int8")
    if precision == "bf16" and not is_fast:
        raise SettingsError(
            "precision bf16: slower than fp32 on this machine (CPUs with AMX and AMD's with "
            "AVX512-BF16 multiply bfloat16 faster); choose fp32 or int8"
        )
    if precision == "int8":
        int8_libraries(device)
    return precision  # type: ignore[return-value]


def int8_libraries(device: torch.device) -> list[str]:
    """What multiplies int8 here: for few rows, and for many where another one is faster then.

    FBGEMM has the least to do around a product; oneDNN is the faster one at large ones where the
    CPU has VNNI or AMX.
    """
    known = engines()
    if device.type != "cpu" or not {"fbgemm", "onednn"} & known:
        raise SettingsError(
            "precision int8: needs an x86 CPU and a torch built with FBGEMM or oneDNN; choose fp32"
        )
    two = has_vnni() and onednn_is_safe()
    return [name for name in ("fbgemm", "onednn") if name in known][: 2 if two else 1]


def engines() -> set[str]:
    """The int8 libraries that torch was built with."""
    return set(torch.backends.quantized.supported_engines)


def has_vnni() -> bool:
    """Whether the CPU adds products of bytes in 32 bits; if not, in 16, which can overflow."""
    if torch.cpu._is_vnni_supported():
        return True
    return CPU_FACTS.exists() and "avx_vnni" in CPU_FACTS.read_text(errors="replace").split()


def packer(precision: Resolved, device: torch.device) -> Pack:
    """What packs the linear layers of an encoder."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        return lambda linear, activation: _Plain(linear, activation, dtype)
    if precision == "int8":
        libraries, reduce_range = int8_libraries(device), not has_vnni()
        return lambda linear, activation: _Int8(linear, activation, libraries, reduce_range)
    if precision == "bf16":
        return lambda linear, activation: _Blocked(linear, activation, torch.bfloat16)
    return _pack_fp32


def _pack_fp32(linear: nn.Linear, activation: str | None) -> PackedLinear:
    if _is_blocked(linear.weight.numel()):
        return _Blocked(linear, activation, torch.float32)
    return _Transposed(linear, activation)


def _is_blocked(numbers: int) -> bool:
    """Whether fp32 weights of so many numbers are packed for oneDNN here."""
    return numbers > SMALL_WEIGHT or torch.backends.cpu.get_cpu_capability() != "AVX2"


class _Plain(PackedLinear):
    """torch's own product: for GPUs, and builds without oneDNN."""

    def __init__(self, linear: nn.Linear, activation: str | None, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight.detach().to(dtype), linear.bias.detach().to(dtype)
        self.activation = activation or ""

    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.linear(x.to(self.weight.dtype), self.weight, self.bias)
        return _activated(y, self.activation)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return nn.functional.linear(x.to(self.weight.dtype), self.weight, self.bias) + residual


class _Transposed(PackedLinear):
    """Weights in fp32 with the inputs as rows, which BLAS need not turn round."""

    def __init__(self, linear: nn.Linear, activation: str | None) -> None:
        super().__init__()
        self.weight = linear.weight.detach().t().contiguous()
        self.bias = linear.bias.detach().clone()
        self.activation = activation or ""

    def forward(self, x: Tensor) -> Tensor:
        return _activated(torch.addmm(self.bias, x, self.weight), self.activation)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight).add_(residual)


def _activated(y: Tensor, activation: str) -> Tensor:
    if activation == "relu":
        return y.relu()
    if activation == "gelu":
        return nn.functional.gelu(y)
    if activation == "gelu_new":
        return nn.functional.gelu(y, approximate="tanh")
    return y


class _Blocked(PackedLinear):
    """oneDNN's blocked weights in fp32 or bf16."""

    def __init__(self, linear: nn.Linear, activation: str | None, dtype: torch.dtype) -> None:
        super().__init__()
        reorder = torch.ops.mkldnn._reorder_linear_weight
        self.weight = reorder(linear.weight.detach().to(dtype))
        self.bias = linear.bias.detach().to(dtype, copy=True)
        self.fused, self.algorithm = ("none", "") if activation is None else _FUSED[activation]

    def forward(self, x: Tensor) -> Tensor:
        x, rows = x.to(self.bias.dtype), x.shape[0]
        more = kernel_rows(rows) - rows
        if more > 0:
            x = nn.functional.pad(x, (0, 0, 0, more))
        y = torch.ops.mkldnn._linear_pointwise(
            x, self.weight, self.bias, self.fused, [], self.algorithm
        )
        return y.narrow(0, 0, rows) if more > 0 else y

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        if kernel_rows(x.shape[0]) > x.shape[0]:
            return self.forward(x).add_(residual)
        return torch.ops.mkldnn._linear_pointwise(x, residual, self.weight, self.bias, "add")


class _Int8(PackedLinear):
    """Weights as signed bytes with a scale for each output; activations as bytes of this call."""

    def __init__(
        self, linear: nn.Linear, activation: str | None, libraries: Sequence[str],
        reduce_range: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        weight, self.bias = linear.weight.detach(), linear.bias.detach().clone()
        scales_O = channel_scales(weight)
        bytes_OI = (weight / scales_O[:, None]).round_().clamp_(-127, 127).to(torch.int8)
        self.packed = _packed_bytes(bytes_OI, scales_O, self.bias, libraries[0])
        self.many = NEVER  # rows from which on oneDNN's own product is faster
        self.packed_for_many, self.scales = torch.empty(0), scales_O
        self.zeros = torch.zeros(len(scales_O), dtype=torch.long)
        if len(libraries) > 1:
            self.packed_for_many = torch.ops.onednn.qlinear_prepack(bytes_OI, None)
            self.many = max(MANY_ROWS, MANY_PRODUCTS // weight.numel())
        self.reduce_range, self.activation = reduce_range, activation or ""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] >= self.many:
            return self.of_many(x)
        y = torch.ops.quantized.linear_dynamic(x, self.packed, self.reduce_range)
        # Both forms of GELU as erf: they differ by 5e-4 at most, far less than a step of a byte,
        # and torch's tanh takes three times as long, nearly as long as the product before it.
        if self.activation == "relu":
            return y.relu_()
        return y if self.activation == "" else nn.functional.gelu(y)

    def of_many(self, x: Tensor) -> Tensor:
        """By oneDNN, which activates what it has just computed."""
        rows = x.shape[0]
        more = kernel_rows(rows) - rows
        if more > 0:
            x = nn.functional.pad(x, (0, 0, 0, more))
        scale, zero = byte_range(x, 127 if self.reduce_range else 255)
        quantized = torch.quantize_per_tensor(x, scale, zero, torch.quint8)
        fused = "none" if self.activation == "" else self.activation
        y = torch.ops.onednn.qlinear_pointwise(
            _bytes_of(quantized), scale, zero, self.packed_for_many, self.scales, self.zeros,
            self.bias, 1.0, 0, torch.float32, "gelu" if fused == "gelu_new" else fused, [],
            "none" if "gelu" in fused else "",
        )  # fmt: skip
        return y.narrow(0, 0, rows) if more > 0 else y

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.forward(x).add_(residual)


def byte_range(x: Tensor, levels: int) -> tuple[float, int]:
    """The step of so many bytes that hold every value of x and 0, and the byte of 0.

    In one pass over x; `quantize_per_tensor_dynamic` takes one for each end.
    """
    low, high = torch.aminmax(x)
    least, most = min(float(low), 0.0), max(float(high), 0.0)
    scale = (most - least) / levels
    if scale < 1e-30:  # nothing but zeros
        return 1.0, 0
    return scale, min(levels, int(-least / scale + 0.5))


@torch.jit.ignore(drop=False)  # TorchScript wants the types of such a function as a comment
def _bytes_of(quantized):
    # type: (Tensor) -> Tensor
    """The bytes where they are: `int_repr` copies them, which takes longer than making them.

    In Python, as TorchScript does not know this form of `view`; fit to be handed on, no more.
    """
    return quantized.view(torch.uint8)


def first_padded(precision: Resolved, device: torch.device, largest: int) -> int:
    """The number of rows from which on products take those of the grid; never is a large number.

    `largest` are the numbers of the largest weight.
    """
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return NEVER
    if precision == "int8":
        return MANY_ROWS if len(int8_libraries(device)) > 1 else NEVER
    return 1 if precision == "bf16" or _is_blocked(largest) else NEVER


def channel_scales(weight_OI: Tensor) -> Tensor:
    """The step of each output's bytes: its largest weight is 127."""
    return weight_OI.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny * 127) / 127


def _packed_bytes(bytes_OI: Tensor, scales_O: Tensor, bias_O: Tensor, library: str) -> Any:
    zeros = torch.zeros(len(scales_O), dtype=torch.long)
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = library  # what is packed remembers it
    try:
        with warnings.catch_warnings():  # torch means to replace its quantized tensors some day
            warnings.simplefilter("ignore")
            whole = torch._make_per_channel_quantized_tensor(bytes_OI, scales_O.double(), zeros, 0)
            return torch.ops.quantized.linear_prepack(whole, bias_O)
    finally:
        torch.backends.quantized.engine = before
