"""The encoder's own promises: depth at run time, packed = padded, sharing, groups."""

from __future__ import annotations

import pytest
import torch

from litebert.base.errors import SettingsError
from litebert.model.config import EncoderConfig, group_of_layer
from litebert.model.model import Model, share_embeddings

SMALL = {
    "vocab_size": 60,
    "embedding_size": 8,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "num_hidden_layers": 4,
    "max_position_embeddings": 32,
    "initializer_range": 0.3,
}
LENGTHS = [7, 7, 3, 1]


def _model(*heads: str, **changes: object) -> Model:
    return Model.create(EncoderConfig(**{**SMALL, **changes}), heads, seed=3)  # type: ignore[arg-type]


def _batch() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(5, 60, (len(LENGTHS), 7))
    return ids, torch.arange(7) < torch.tensor(LENGTHS)[:, None]


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none"])
def test_packed_and_padded_agree_in_values_and_gradients(sharing: str) -> None:
    model = _model("masked_lm", "sentence_pair", sharing=sharing)
    ids, mask = _batch()
    gradients = []
    for options in ({"ids": ids, "mask": mask}, {"ids": ids[mask], "lengths": LENGTHS}):
        state = model(**options)
        positions = torch.tensor([1, 8, 14])
        if "mask" in options:  # the same tokens, counted with padding
            positions = mask.flatten().nonzero().squeeze(1)[positions]
        loss, _ = model.head("masked_lm").loss(state, positions, torch.tensor([9, 10, 11]))
        loss = loss + model.head("sentence_pair")(state).square().sum()
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    for padded, packed in zip(*gradients, strict=True):
        torch.testing.assert_close(padded, packed, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("depth", [1, 3, 4, 9])
def test_a_shared_encoder_runs_at_any_depth(depth: int) -> None:
    model = _model().eval()
    deep = _model(num_hidden_layers=depth).eval()
    deep.load_state_dict(model.state_dict())
    ids, mask = _batch()
    torch.testing.assert_close(model(ids, mask=mask, depth=depth).x_NH, deep(ids, mask=mask).x_NH)


@pytest.mark.parametrize("packed", [False, True])
def test_a_depth_for_each_sequence(packed: bool) -> None:
    model = _model().eval()
    ids, mask = _batch()
    depths = [6, 1, 4, 1]
    options = {"ids": ids[mask], "lengths": LENGTHS} if packed else {"ids": ids, "mask": mask}
    mixed = model(**options, depth=depths).padded()[0]
    for row, depth in enumerate(depths):
        single = model(**options, depth=depth).padded()[0]
        real = LENGTHS[row]
        torch.testing.assert_close(mixed[row, :real], single[row, :real], rtol=1e-5, atol=1e-6)


def test_layers_can_be_cut_anywhere() -> None:
    model = _model(sharing="none").eval()
    ids, mask = _batch()
    state = model.encoder.embed(ids, mask=mask)
    halves = model.encoder.layers(model.encoder.layers(state, 0, 2), 2, 4)
    torch.testing.assert_close(halves.x_NH, model(ids, mask=mask).x_NH)


@pytest.mark.parametrize(("depth", "words"), [(0, "at least one"), (-1, "at least one")])
def test_depth_must_be_positive(depth: int, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        _model()(torch.ones(1, 3, dtype=torch.long), depth=depth)


def test_only_shared_layers_run_deeper() -> None:
    with pytest.raises(SettingsError, match="depth 5: this encoder has 4 layers"):
        _model(sharing="ffn")(torch.ones(1, 3, dtype=torch.long), depth=5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ids": torch.ones(1, 33, dtype=torch.long)}, "33 tokens is too long"),
        ({"ids": torch.ones(4, dtype=torch.long), "lengths": [3]}, "sum to 3"),
        ({"ids": torch.ones(4, dtype=torch.long)}, "or `lengths`"),
        ({"ids": torch.ones(2, 3, dtype=torch.long), "depth": [1]}, "1 entries for a batch of 2"),
    ],
)
def test_batches_that_do_not_fit(options: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        _model()(**options)


def test_group_rule_is_exact_in_integers() -> None:
    for layers in range(1, 49):
        assert [group_of_layer(i, layers, layers) for i in range(layers)] == list(range(layers))


def test_shared_tensors_exist_once() -> None:
    counts = {
        sharing: (len(m.encoder.attentions), len(m.encoder.feed_forwards))
        for sharing in ("all", "attention", "ffn", "none")
        for m in [_model(sharing=sharing)]
    }
    assert counts == {"all": (1, 1), "attention": (1, 4), "ffn": (4, 1), "none": (4, 4)}


def test_start_is_a_truncated_normal() -> None:
    model = _model("masked_lm", hidden_size=128, intermediate_size=512, initializer_range=0.02)
    weight = model.encoder.feed_forwards[0].inner.weight  # 65,536 draws
    assert weight.abs().max().item() <= 0.04
    assert abs(weight.std().item() - 0.02 * 0.8796) < 2e-4  # a normal cut at two deviations
    assert model.heads["masked_lm"].bias.abs().max() == 0
    same = _model("masked_lm", hidden_size=128, intermediate_size=512, initializer_range=0.02)
    assert torch.equal(weight, same.encoder.feed_forwards[0].inner.weight)


def test_checkpointing_changes_memory_and_nothing_else() -> None:
    """The same dropout too: recomputed blocks draw the same numbers."""
    ids, mask = _batch()
    model = _model("masked_lm", hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    gradients = []
    for checkpointing in (False, True):
        model.encoder.checkpointing = checkpointing
        torch.manual_seed(1)
        state = model(ids, mask=mask)
        loss, _ = model.head("masked_lm").loss(state, torch.tensor([1]), torch.tensor([7]))
        gradients.append(torch.autograd.grad(loss, list(model.encoder.parameters())))
    for plain, recomputed in zip(*gradients, strict=True):
        assert torch.equal(plain, recomputed)


def test_dropout_acts_in_training_only_and_by_the_seed() -> None:
    model = _model(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    ids, mask = _batch()
    torch.manual_seed(5)
    first = model(ids, mask=mask).x_NH
    second = model(ids, mask=mask).x_NH
    torch.manual_seed(5)
    again = model(ids, mask=mask).x_NH
    assert not torch.equal(first, second)
    assert torch.equal(first, again)
    model.eval()
    assert torch.equal(model(ids, mask=mask).x_NH, model(ids, mask=mask).x_NH)


def test_electra_shares_the_whole_embeddings() -> None:
    shape = {"family": "electra", "sharing": "none", "embedding_size": 16}
    discriminator = _model("replaced_token", **shape)
    generator = _model("masked_lm", **{**shape, "hidden_size": 8, "num_attention_heads": 1})
    share_embeddings(generator, discriminator)
    ids, _ = _batch()
    loss, _ = generator.head("masked_lm").loss(generator(ids), torch.tensor([1]), torch.tensor([7]))
    loss.backward()
    for table in ("token", "position", "segment", "norm"):
        assert getattr(discriminator.encoder.embeddings, table).weight.grad.abs().sum() > 0
    with pytest.raises(SettingsError, match="cannot be shared"):
        share_embeddings(_model(family="electra", sharing="none"), discriminator)


@pytest.mark.parametrize("packed", [False, True])
def test_bf16_is_close_and_its_gradients_are_fp32(packed: bool) -> None:
    model = _model("masked_lm", "sentence_pair", initializer_range=0.1)
    ids, mask = _batch()
    options = {"ids": ids[mask], "lengths": LENGTHS} if packed else {"ids": ids, "mask": mask}
    gradients = []
    for low in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            state = model(**options)
            loss, _ = model.head("masked_lm").loss(
                state, torch.tensor([1, 8]), torch.tensor([7, 9])
            )
            loss = loss + model.head("sentence_pair")(state).float().square().sum()
        assert state.x_NH.isfinite().all()
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    for exact, rounded in zip(*gradients, strict=True):
        assert rounded.dtype == torch.float32
        error = (exact - rounded).norm() / exact.norm().clamp_min(1e-3)
        assert error < 0.1


@pytest.mark.parametrize("masked", [False, True])
def test_both_attention_kernels_agree(masked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model().eval()
    ids, mask = _batch()
    fused = model(ids, mask=mask if masked else None).x_NH
    monkeypatch.setattr("litebert.model.attention.prefers_products", lambda *_: True)
    products = model(ids, mask=mask if masked else None).x_NH
    real = mask.flatten() if masked else slice(None)
    torch.testing.assert_close(fused[real], products[real], rtol=1e-5, atol=1e-5)
