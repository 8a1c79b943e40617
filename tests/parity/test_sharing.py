"""Encoders that transformers has no name for open there too: one group a layer, same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

import litebert
from litebert.model.config import EncoderConfig
from litebert.model.huggingface import KEY
from litebert.model.model import Model, share_embeddings

BAR = 1e-5
TASKS = {
    ("masked_lm", "sentence_pair"): "AlbertForPreTraining",
    ("classification",): "AlbertForSequenceClassification",
    (): "AlbertModel",
}


def _config(**changes: object) -> EncoderConfig:
    values = {
        "vocab_size": 99, "embedding_size": 16, "hidden_size": 32, "num_hidden_layers": 4,
        "num_attention_heads": 4, "intermediate_size": 48, "initializer_range": 0.15,
    }  # fmt: skip
    return EncoderConfig(**{**values, **changes})  # type: ignore[arg-type]


def _logits(model: Model, heads: tuple[str, ...], ids: torch.Tensor) -> list[torch.Tensor]:
    state = model(ids)
    if not heads:
        return [state.x_NH.view(*ids.shape, -1), model.pooler(state)]
    found = [model.head(head)(state) for head in heads]
    return [found[0].view(*ids.shape, -1), *found[1:]] if len(found) == 2 else found


@pytest.mark.parametrize("heads", TASKS)
@pytest.mark.parametrize("embedding", [16, 32])  # 32 = H: no map here, the identity there
@pytest.mark.parametrize("sharing", ["attention", "ffn", "none", "all"])
def test_partly_shared_exports_open_in_transformers(
    sharing: str, embedding: int, heads: tuple[str, ...], tmp_path: Path
) -> None:
    config = _config(sharing=sharing, embedding_size=embedding)
    ours = Model.create(config, heads, labels=["bad", "so so", "good"], seed=1).eval()
    ours.save(tmp_path / "model")
    cls = getattr(transformers, TASKS[heads])
    theirs, report = cls.from_pretrained(tmp_path / "model", output_loading_info=True)
    assert not any(report.values()), report
    assert theirs.config.num_hidden_groups == (1 if sharing == "all" else 4)
    ids = torch.randint(5, 99, (3, 11))
    with torch.no_grad():
        expected = [value for value in theirs.eval()(ids).to_tuple() if value is not None]
        for mine, other in zip(_logits(ours, heads, ids), expected, strict=True):
            assert (mine - other).abs().max().item() <= BAR
    again = litebert.load(tmp_path / "model")
    assert again.config == config
    assert again.state_dict().keys() == ours.state_dict().keys()
    assert again.labels == ("bad", "so so", "good")


def test_sharing_survives_transformers(tmp_path: Path) -> None:
    """Saved again by transformers our key stays, so what is shared comes back shared."""
    Model.create(_config(sharing="ffn"), seed=1).save(tmp_path / "ours")
    theirs = transformers.AlbertModel.from_pretrained(tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "theirs")
    assert KEY in (tmp_path / "theirs" / "config.json").read_text()
    again = litebert.load(tmp_path / "theirs")
    assert (len(again.encoder.attentions), len(again.encoder.feed_forwards)) == (4, 1)


def test_layers_that_grew_apart_are_not_shared_silently(tmp_path: Path) -> None:
    Model.create(_config(sharing="ffn"), seed=1).save(tmp_path / "ours")
    theirs = transformers.AlbertModel.from_pretrained(tmp_path / "ours")
    theirs.encoder.albert_layer_groups[2].albert_layers[0].ffn.weight.data[0, 0] += 1
    theirs.save_pretrained(tmp_path / "theirs")
    with pytest.raises(litebert.LitebertError, match=r"groups\.2.*ffn\.weight.*differs"):
        litebert.load(tmp_path / "theirs")


def test_groups_that_transformers_would_mix_up_are_written_a_layer_each(tmp_path: Path) -> None:
    """transformers divides floats: with 14 groups of 18 layers it errs."""
    config = _config(num_hidden_layers=18, num_hidden_groups=14, initializer_range=0.05)
    ours = Model.create(config, seed=1).eval()
    ours.save(tmp_path / "model")
    theirs = transformers.AlbertModel.from_pretrained(tmp_path / "model").eval()
    ids = torch.randint(5, 99, (2, 6))
    with torch.no_grad():
        expected = theirs(ids).last_hidden_state.flatten(0, 1)
        assert (ours(ids).x_NH - expected).abs().max().item() <= BAR
    assert litebert.load(tmp_path / "model").config == config


def test_electra_pair_with_shared_embeddings(tmp_path: Path) -> None:
    """Two folders; each opens in transformers with the embeddings both have."""
    shape = {"family": "electra", "sharing": "none"}
    discriminator = Model.create(_config(**shape), ("replaced_token",), seed=1).eval()
    small = {"hidden_size": 8, "num_attention_heads": 1, "intermediate_size": 32}
    generator = Model.create(_config(**shape, **small), ("masked_lm",), seed=2).eval()
    share_embeddings(generator, discriminator)
    ids = torch.randint(5, 99, (3, 11))
    for name, model, cls in [
        ("discriminator", discriminator, transformers.ElectraForPreTraining),
        ("generator", generator, transformers.ElectraForMaskedLM),
    ]:
        model.save(tmp_path / name)
        theirs, report = cls.from_pretrained(tmp_path / name, output_loading_info=True)
        assert not any(report.values()), report
        with torch.no_grad():
            head = next(iter(model.heads))
            mine = model.head(head)(model(ids))
            expected = theirs.eval()(ids).logits.flatten(0, 1)
        assert (mine - expected).abs().max().item() <= BAR
    words = [litebert.load(tmp_path / n).encoder.embeddings.token.weight for n in
             ("discriminator", "generator")]  # fmt: skip
    assert torch.equal(*words)
