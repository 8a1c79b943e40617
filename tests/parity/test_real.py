"""Really trained and full-size models; extras, run where there is data or time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import litebert
from litebert.configs.load import preset_names
from tests.parity.families import build, config

BAR = 1e-5


def test_a_trained_albert_reproduces_its_golden_output(real_data: Path) -> None:
    folder = real_data / "weights" / "plbert-albert"
    model = litebert.load(folder)
    golden = np.load(folder / "golden_last_hidden_state.npz")
    arrays = {name: torch.from_numpy(golden[name]) for name in golden.files}
    expected = next(a for a in arrays.values() if a.is_floating_point() and a.dim() == 3)
    ids = next(a for n, a in arrays.items() if not a.is_floating_point() and "id" in n.lower())
    masks = [a for n, a in arrays.items() if "mask" in n.lower()]
    real = masks[0].bool() if masks else torch.ones_like(ids).bool()
    with torch.no_grad():
        padded = model(ids.long(), mask=real).padded()[0]
        packed = model(ids[real].long(), lengths=real.sum(1).tolist()).x_NH
    assert (padded - expected)[real].abs().max().item() <= BAR
    assert (packed - expected[real]).abs().max().item() <= BAR


BASE = {
    "AlbertForPreTraining": {"hidden_size": 768, "num_attention_heads": 12,
                             "intermediate_size": 3072, "embedding_size": 128},
    "BertForPreTraining": {},
    "RobertaForMaskedLM": {"type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "ElectraForPreTraining": {"hidden_size": 768, "num_attention_heads": 12,
                              "intermediate_size": 3072, "embedding_size": 768},
}  # fmt: skip


@pytest.mark.extra
@pytest.mark.parametrize("architecture", BASE)
def test_base_sizes(architecture: str, tmp_path: Path) -> None:
    family = architecture.partition("For")[0].lower()
    shape = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
             "num_hidden_layers": 12, "vocab_size": 30000, **BASE[architecture]}  # fmt: skip
    theirs = build(architecture, config(family, **shape), scale=0.02)
    theirs.save_pretrained(tmp_path / "hf")
    ours = litebert.load(tmp_path / "hf")
    ids = torch.randint(5, 30000, (2, 512))
    mask = torch.ones_like(ids)
    mask[1, 300:] = 0
    ids[1, 300:] = 1
    real = mask.bool()
    with torch.no_grad():
        output = getattr(theirs, family)(input_ids=ids, attention_mask=mask)
        expected = output.last_hidden_state[real]
        padded = ours(ids, mask=real).x_NH[real.flatten()]
        packed = ours(ids[real], lengths=[512, 300]).x_NH
    worst = [(found - expected).abs().max().item() for found in (padded, packed)]
    print(f"\n{architecture}: max difference padded {worst[0]:.1e}, packed {worst[1]:.1e}")
    assert max(worst) <= BAR


@pytest.mark.extra
@pytest.mark.parametrize("name", [n for n in preset_names() if "xxlarge" not in n])
def test_every_preset_opens_in_transformers(name: str, tmp_path: Path) -> None:
    import transformers

    preset = litebert.load_preset(name, ["model.num_hidden_layers=2"])
    model = litebert.Model.create(preset.model, preset.heads).eval()
    model.save(tmp_path / name)
    raw = transformers.AutoConfig.from_pretrained(tmp_path / name)
    cls = getattr(transformers, raw.architectures[0])
    theirs, report = cls.from_pretrained(tmp_path / name, output_loading_info=True)
    assert not any(report.values()), report
    ids = torch.randint(5, 1000, (2, 16))
    with torch.no_grad():
        expected = getattr(theirs, raw.model_type)(ids).last_hidden_state.flatten(0, 1)
        assert (model(ids).x_NH - expected).abs().max().item() <= BAR
