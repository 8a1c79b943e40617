"""Packed products: the same numbers, packed once, and no saturation."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from litebert.base.runtime import has_fast_bf16
from litebert.inference.kernels import (
    channel_scales,
    grid,
    has_vnni,
    int8_libraries,
    packer,
)
from litebert.inference.packed import PackedEncoder, pack_model
from litebert.model.config import EncoderConfig
from litebert.model.model import Model

CPU = torch.device("cpu")
ENGINES = [e for e in ("fbgemm", "onednn") if e in torch.backends.quantized.supported_engines]


def linear(inputs: int, outputs: int, seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(inputs, outputs).requires_grad_(False)


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


@pytest.mark.parametrize("engine", ENGINES)
def test_int8_does_not_saturate_at_extreme_activations(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All weights and activations at their largest: where 16 bits overflow, sums are too low."""
    monkeypatch.setattr("litebert.inference.kernels.int8_libraries", lambda device: [engine])
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
    monkeypatch.setattr("litebert.inference.kernels.AMX_PAYS", 40 * 64 * 32)
    layer = linear(64, 32)
    for rows in (39, 40, 41):
        x = torch.randn(rows, 64)
        found = packer("int8", CPU)(layer, "gelu")(x)
        assert found.shape == (rows, 32)
        assert torch.allclose(found, torch.nn.functional.gelu(layer(x)), atol=0.05)


@pytest.mark.skipif(not has_fast_bf16(CPU), reason="this CPU does not multiply bfloat16 itself")
def test_bf16_is_near() -> None:
    layer, x = linear(64, 32), torch.randn(40, 64)
    found = packer("bf16", CPU)(layer, None)(x)
    assert found.dtype == torch.bfloat16
    assert torch.allclose(found.float(), layer(x), atol=0.05)


def test_the_library_follows_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    for amx, expected in ((True, ["fbgemm", "onednn"]), (False, ["fbgemm"])):
        monkeypatch.setattr("torch.cpu._is_amx_tile_supported", lambda amx=amx: amx)
        monkeypatch.setattr("litebert.inference.kernels.engines", lambda: {"fbgemm", "onednn"})
        assert int8_libraries(CPU) == expected


@given(st.integers(1, 5000))
def test_rows_are_rounded_up_by_little(rows: int) -> None:
    assert rows <= grid(rows) <= rows * 1.25
    assert grid(grid(rows)) == grid(rows)


def test_there_are_few_shapes() -> None:
    assert len({grid(rows) for rows in range(1, 2049)}) < 80
    assert np.all(np.diff([grid(rows) for rows in range(1, 3000)]) >= 0)
