"""Packed products: the same numbers, packed once, and no saturation."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from litebert.base.runtime import has_fast_bf16, kernel_rows
from litebert.inference.kernels import (
    MANY_PRODUCTS,
    byte_range,
    channel_scales,
    first_padded,
    has_vnni,
    int8_libraries,
    packer,
)
from litebert.inference.packed import PackedEncoder, compiled, pack_model
from litebert.model.config import EncoderConfig
from litebert.model.model import Model

CPU = torch.device("cpu")
ENGINES = [e for e in ("fbgemm", "onednn") if e in torch.backends.quantized.supported_engines]


def linear(inputs: int, outputs: int, seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(inputs, outputs).requires_grad_(False)


@pytest.fixture(params=["AVX2", "AVX512"])
def capability(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to pack fp32, wherever this runs."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: request.param)
    return request.param


def test_small_weights_are_not_blocked_without_avx512(capability: str) -> None:
    packed = packer("fp32", CPU)
    names = [type(packed(linear(48, width), None)).__name__ for width in (80, 16_000)]
    assert names == ["_Transposed" if capability == "AVX2" else "_Blocked", "_Blocked"]
    assert (first_padded("fp32", CPU, 80 * 48) == 1) == (capability == "AVX512")
    assert first_padded("fp32", CPU, 16_000 * 48) == 1


@pytest.mark.usefixtures("capability")
@pytest.mark.parametrize("activation", [None, "gelu", "gelu_new", "relu"])
@pytest.mark.parametrize("rows", [1, 5, 33, 200])
def test_packed_fp32_equals_plain(activation: str | None, rows: int) -> None:
    layer, x = linear(48, 80), torch.randn(rows, 48)
    packed = packer("fp32", CPU)(layer, activation)
    forms = {None: lambda y: y, "relu": torch.relu, "gelu": torch.nn.functional.gelu}
    forms["gelu_new"] = lambda y: torch.nn.functional.gelu(y, approximate="tanh")
    assert torch.allclose(packed(x), forms[activation](layer(x)), atol=1e-5)
    residual = torch.randn(rows, 80)
    plain = packer("fp32", CPU)(layer, None)
    assert torch.allclose(plain.plus(x, residual), layer(x) + residual, atol=1e-5)


FAMILIES = {
    "albert": {},
    "unshared": {"sharing": "none"},
    "attention": {"sharing": "attention"},
    "inner": {"inner_group_num": 2},
    "bert": {"family": "bert", "sharing": "none", "embedding_size": 32, "hidden_act": "gelu"},
    "roberta": {
        "family": "roberta", "sharing": "none", "embedding_size": 32, "hidden_act": "relu",
        "pad_token_id": 1,
    },
    "electra": {"family": "electra", "sharing": "none", "hidden_act": "gelu"},
}  # fmt: skip


@pytest.mark.usefixtures("capability")
@pytest.mark.parametrize("family", FAMILIES)
def test_a_packed_encoder_equals_the_plain_one(family: str) -> None:
    size = {
        "vocab_size": 60, "embedding_size": 16, "hidden_size": 32, "num_hidden_layers": 3,
        "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 40,
    }  # fmt: skip
    model = Model.create(EncoderConfig(**{**size, **FAMILIES[family]}), seed=1).eval()
    lengths = [7, 7, 1, 30, 4]
    ids = torch.randint(2, 60, (sum(lengths),))
    segments = torch.randint(0, 2, ids.shape)
    read = torch.tensor([0, 3, 20])
    packed = pack_model(copy.deepcopy(model), "fp32")
    with torch.inference_mode():
        for options in ({}, {"segments": segments}, {"read": read}, {"depth": 2}):
            plain = model(ids, lengths=lengths, **options).x_NH
            assert torch.allclose(packed(ids, lengths=lengths, **options).x_NH, plain, atol=1e-5)
        mixed = model(ids, lengths=lengths, depth=[1, 3, 2, 3, 1]).x_NH
        found = packed(ids, lengths=lengths, depth=[1, 3, 2, 3, 1]).x_NH
        assert torch.allclose(found, mixed, atol=1e-5)


@pytest.mark.parametrize("heads", [("classification",), ("masked_lm",)])
def test_tokens_are_bytes_where_no_head_decodes_with_them(heads: tuple[str, ...]) -> None:
    config = EncoderConfig(
        vocab_size=60, embedding_size=16, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=40,
    )  # fmt: skip
    model = Model.create(config, heads, ("no", "yes"), seed=1).eval()
    ids = torch.randint(2, 60, (30,))
    with torch.inference_mode():
        plain = model.encoder.embed(ids, lengths=[30]).x_NH
        packed = pack_model(copy.deepcopy(model), "int8").encoder
        found = packed.embed(ids, lengths=[30]).x_NH
    assert len(packed.embeddings.token.weight) == (60 if heads == ("masked_lm",) else 0)
    assert (found - plain).abs().max() < 0.05 * plain.abs().max()


def test_a_shared_layer_is_packed_once() -> None:
    config = EncoderConfig(
        vocab_size=60, embedding_size=16, hidden_size=32, num_hidden_layers=12,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=40,
    )  # fmt: skip
    encoder = pack_model(Model.create(config), "int8").encoder
    assert isinstance(encoder, PackedEncoder)
    assert (
        len({id(part) for layer in range(12) for pair in encoder.parts(layer) for part in pair})
        == 2
    )
    left = sum(parameter.numel() for parameter in encoder.parameters())
    assert left == sum(p.numel() for p in encoder.embeddings.parameters())  # the others are let go


@pytest.mark.parametrize("engines", [*([engine] for engine in ENGINES), ENGINES])
def test_int8_does_not_saturate_at_extreme_activations(
    engines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All weights and activations at their largest: where 16 bits overflow, sums are too low."""
    monkeypatch.setattr("litebert.inference.kernels.int8_libraries", lambda device: engines)
    layer = nn.Linear(512, 64).requires_grad_(False)
    layer.weight.fill_(0.5)
    layer.bias.zero_()
    packed = packer("int8", CPU)(layer, None)
    for value in (0.1, 1.0, 1e4):
        x = torch.full((4, 512), value)
        x[1] *= -1
        x[2, ::2] = 0
        x[3, ::2] *= -1
        expected = layer(x)
        assert (packed(x) - expected).abs().max() <= 0.01 * expected.abs().max()
        many = x.repeat(2 * MANY_PRODUCTS // layer.weight.numel() // 4, 1)  # the other product
        assert (packed(many) - layer(many)).abs().max() <= 0.01 * expected.abs().max()


@pytest.mark.parametrize("engine", ENGINES)
def test_int8_error_is_that_of_rounding(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the same sum in float64 from values rounded to bytes by hand."""
    monkeypatch.setattr("litebert.inference.kernels.int8_libraries", lambda device: [engine])
    layer, x = linear(300, 50), torch.randn(9, 300) * 3
    layer.weight[7] *= 100  # a channel of its own scale
    steps = channel_scales(layer.weight)
    weights = torch.round(layer.weight / steps[:, None]) * steps[:, None]
    levels = 255 if has_vnni() else 127
    step = (x.max().clamp_min(0) - x.min().clamp_max(0)) / levels
    bound = 0.51 * step * weights.abs().sum(1)  # half a step of every activation
    exact = x.double() @ weights.double().T + layer.bias.double()
    assert ((packer("int8", CPU)(layer, None)(x) - exact).abs() <= bound + 1e-4).all()


@pytest.mark.skipif(len(ENGINES) < 2, reason="torch has one library for int8 here")
def test_large_products_go_to_the_other_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("litebert.inference.kernels.int8_libraries", lambda device: ENGINES)
    monkeypatch.setattr("litebert.inference.kernels.MANY_PRODUCTS", 40 * 64 * 32)
    monkeypatch.setattr("litebert.inference.kernels.MANY_ROWS", 1)
    layer, gelu = linear(64, 32), torch.nn.functional.gelu
    forms = {None: lambda y: y, "relu": torch.relu, "gelu": gelu, "gelu_new": gelu}
    for rows in (39, 40, 41):
        x, residual = torch.randn(rows, 64), torch.randn(rows, 32)
        for activation, form in forms.items():
            packed = packer("int8", CPU)(layer, activation)
            assert packed(x).shape == (rows, 32)
            assert torch.allclose(packed(x), form(layer(x)), atol=0.05)
        plain = packer("int8", CPU)(layer, None)
        assert torch.allclose(plain.plus(x, residual), layer(x) + residual, atol=0.05)
        assert torch.equal(compiled(plain)(x), plain(x))  # as the encoder calls it


@given(
    values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=9),
    levels=st.sampled_from([127, 255]),
)
def test_bytes_hold_every_value_and_zero(values: list[float], levels: int) -> None:
    x = torch.tensor(values)
    scale, zero = byte_range(x, levels)
    held = torch.round(x.double() / scale) + zero
    assert 0 <= zero <= levels
    assert held.min() >= -0.5 - 1e-6
    assert held.max() <= levels + 1  # the byte of 0 is rounded: the last value may be cut by one
    assert (
        torch.quantize_per_tensor(x, scale, zero, torch.quint8).dequantize() - x
    ).abs().max() <= (1.01 * scale)


@pytest.mark.skipif(len(ENGINES) < 2, reason="torch has one library for int8 here")
def test_rows_that_are_added_change_no_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch between two sizes of kernels, against the same without the rows that fill it up."""
    monkeypatch.setattr("litebert.inference.kernels.int8_libraries", lambda device: ENGINES)
    config = EncoderConfig(
        vocab_size=60, embedding_size=16, hidden_size=32, num_hidden_layers=3,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=80,
    )  # fmt: skip
    model = pack_model(Model.create(config, seed=1), "int8")
    ids = torch.randint(2, 60, (67,))
    with torch.inference_mode():
        found = model(ids, lengths=[60, 7]).x_NH
        monkeypatch.setattr(model.encoder, "_padded_from", 1000)
        assert torch.allclose(model(ids, lengths=[60, 7]).x_NH, found, atol=1e-6)


@pytest.mark.skipif(not has_fast_bf16(CPU), reason="bfloat16 is not the faster one on this CPU")
def test_bf16_is_near() -> None:
    layer, x = linear(64, 32), torch.randn(40, 64)
    found = packer("bf16", CPU)(layer, None)(x)
    assert found.dtype == torch.bfloat16
    assert torch.allclose(found.float(), layer(x), atol=0.05)


def test_the_library_follows_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    for vnni, expected in ((True, ["fbgemm", "onednn"]), (False, ["fbgemm"])):
        monkeypatch.setattr("litebert.inference.kernels.has_vnni", lambda vnni=vnni: vnni)
        monkeypatch.setattr("litebert.inference.kernels.engines", lambda: {"fbgemm", "onednn"})
        assert int8_libraries(CPU) == expected


@given(st.integers(1, 5000))
def test_rows_are_rounded_up_by_little(rows: int) -> None:
    assert rows <= kernel_rows(rows) <= rows * 1.25
    assert kernel_rows(kernel_rows(rows)) == kernel_rows(rows)


def test_there_are_few_shapes() -> None:
    assert len({kernel_rows(rows) for rows in range(1, 2049)}) < 90
    assert np.all(np.diff([kernel_rows(rows) for rows in range(1, 3000)]) >= 0)
