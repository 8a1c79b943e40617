"""Our numbers are transformers' numbers: hidden states, every head, padded and packed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import litebert
from tests.parity.families import build, config

BAR = 1e-5

ENCODERS = {
    "albert-1-1": ("albert", {"num_hidden_layers": 4}),
    "albert-3-1": ("albert", {"num_hidden_layers": 6, "num_hidden_groups": 3}),
    "albert-1-2": ("albert", {"inner_group_num": 2}),
    "albert-4-2": (
        "albert",
        {"num_hidden_layers": 8, "num_hidden_groups": 4, "inner_group_num": 2},
    ),
    "albert-erf": ("albert", {"hidden_act": "gelu"}),
    "albert-relu": ("albert", {"hidden_act": "relu"}),
    "albert-e-is-h": ("albert", {"embedding_size": 32}),
    "bert": ("bert", {}),
    "bert-tanh": ("bert", {"hidden_act": "gelu_new"}),
    "roberta": ("roberta", {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "electra": ("electra", {}),
    "electra-e-is-h": ("electra", {"embedding_size": 32}),
    "electra-generator": ("electra", {"embedding_size": 48}),
}


def _import(model: Any, folder: Path) -> litebert.Model:
    model.save_pretrained(folder)
    return litebert.load(folder)


def _batch(lengths: list[int], width: int, side: str, types: int) -> tuple[Tensor, Tensor, Tensor]:
    ids = torch.randint(5, 99, (len(lengths), width))
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        if side == "right":
            mask[row, :length] = 1
        else:
            mask[row, width - length :] = 1
    ids = torch.where(mask.bool(), ids, 1)  # 1 is RoBERTa's padding
    return ids, mask, torch.randint(0, types, ids.shape) * mask


def _difference(ours: Tensor, theirs: Tensor) -> float:
    return (ours - theirs).abs().max().item()


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", ENCODERS)
def test_every_hidden_state_padded_and_packed(name: str, side: str, tmp_path: Path) -> None:
    family, changes = ENCODERS[name]
    theirs = build(f"{family.capitalize()}Model", config(family, **changes))
    ours = _import(theirs, tmp_path / "hf")
    types = theirs.config.type_vocab_size
    ids, mask, segments = _batch([9, 1, 6], 9, side, types)
    real = mask.bool()
    # transformers counts BERT's positions from the padding; packed tokens say theirs.
    positions = torch.arange(9).expand(3, 9)[real] if family != "roberta" else None
    with torch.no_grad():
        expected = theirs(
            input_ids=ids, attention_mask=mask, token_type_ids=segments, output_hidden_states=True
        ).hidden_states
        for options in (
            {"ids": ids, "mask": mask, "segments": segments},
            {"ids": ids[real], "segments": segments[real], "positions": positions,
             "lengths": mask.sum(1).tolist()},
        ):  # fmt: skip
            state = ours.encoder.embed(**options)
            states = [state]
            ours.encoder.layers(state, 0, ours.config.num_hidden_layers, collect=states)
            assert len(states) == len(expected)
            for mine, other in zip(states, expected, strict=True):
                tokens = mine.x_NH[real.flatten()] if "mask" in options else mine.x_NH
                assert _difference(tokens, other[real]) <= BAR


@pytest.mark.parametrize("name", ["albert-1-1", "bert", "roberta", "electra"])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (1, 512), (2, 512)])
def test_shortest_and_longest(name: str, rows: int, width: int, tmp_path: Path) -> None:
    family, changes = ENCODERS[name]
    theirs = build(f"{family.capitalize()}Model", config(family, **changes))
    ours = _import(theirs, tmp_path / "hf")
    ids = torch.randint(5, 99, (rows, width))
    with torch.no_grad():
        expected = theirs(input_ids=ids)
        state = ours(ids)
        packed = ours(ids.flatten(), lengths=[width] * rows)
        assert _difference(state.x_NH, expected.last_hidden_state.flatten(0, 1)) <= BAR
        assert _difference(packed.x_NH, expected.last_hidden_state.flatten(0, 1)) <= BAR
        if family != "electra":
            assert _difference(ours.pooler(state), expected.pooler_output) <= BAR


HEADS = [
    ("albert", "ForPreTraining"), ("albert", "ForMaskedLM"), ("bert", "ForPreTraining"),
    ("bert", "ForMaskedLM"), ("bert", "ForNextSentencePrediction"), ("roberta", "ForMaskedLM"),
    ("electra", "ForPreTraining"), ("electra", "ForMaskedLM"),
    *(
        (family, task)
        for family in ("albert", "bert", "roberta", "electra")
        for task in ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering",
                     "ForMultipleChoice")
    ),
]  # fmt: skip


def _our_logits(ours: litebert.Model, architecture: str, state: Any) -> list[Tensor]:
    if architecture.endswith("QuestionAnswering"):
        return list(ours.head("span")(state).unbind(-1))
    if architecture.endswith("MultipleChoice"):
        return [ours.head("multiple_choice")(state).view(-1, 2)]
    return [ours.head(head)(state) for head in ours.heads]


def _their_logits(architecture: str, output: Any) -> list[Tensor]:
    if architecture.endswith("QuestionAnswering"):
        return [output.start_logits.flatten(), output.end_logits.flatten()]
    if "prediction_logits" in output:
        pair = output.get("sop_logits", output.get("seq_relationship_logits"))
        return [output.prediction_logits.flatten(0, 1), pair]
    logits = output.logits
    per_token = architecture.endswith(("MaskedLM", "TokenClassification", "ElectraForPreTraining"))
    return [logits.flatten(0, 1) if per_token else logits]


@pytest.mark.parametrize(("family", "task"), HEADS)
def test_every_head_both_ways(family: str, task: str, tmp_path: Path) -> None:
    architecture = family.capitalize() + task
    labels = 5 if "Classification" in task else 2
    theirs = build(architecture, config(family, num_labels=labels, type_vocab_size=2))
    ours = _import(theirs, tmp_path / "hf")
    ids = torch.randint(5, 99, (4, 7))
    with torch.no_grad():
        choices = ids.view(2, 2, 7) if task == "ForMultipleChoice" else ids
        expected = _their_logits(architecture, theirs(input_ids=choices))
        for options in ({"ids": ids}, {"ids": ids.flatten(), "lengths": [7] * 4}):
            found = _our_logits(ours, architecture, ours(**options))
            for mine, other in zip(found, expected, strict=True):
                assert mine.shape == other.shape
                assert _difference(mine, other) <= BAR
    _assert_round_trip(theirs, ours, architecture, tmp_path)


def _assert_round_trip(theirs: Any, ours: litebert.Model, name: str, tmp_path: Path) -> None:
    """Import -> export -> import is bit-identical, and transformers misses nothing."""
    ours.save(tmp_path / "ours")
    assert_same(litebert.load(tmp_path / "ours"), ours)
    reopened, report = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert reopened.config.architectures == [name]
    assert not any(report.values()), report
    for key, tensor in theirs.state_dict().items():
        assert torch.equal(tensor, reopened.state_dict()[key])
    reopened.save_pretrained(tmp_path / "theirs")
    assert_same(litebert.load(tmp_path / "theirs"), ours)


def assert_same(one: litebert.Model, other: litebert.Model) -> None:
    """Two models are alike in all that a folder keeps."""
    assert one.config == other.config
    assert one.labels == other.labels
    assert one.state_dict().keys() == other.state_dict().keys()
    for key, tensor in other.state_dict().items():
        assert torch.equal(tensor, one.state_dict()[key]), key


def test_left_padding_shifts_nothing_that_is_packed(tmp_path: Path) -> None:
    """RoBERTa counts real tokens, so both sides of padding and packing give one answer."""
    ours = _import(build("RobertaModel", config("roberta", type_vocab_size=1)), tmp_path / "hf")
    words = torch.randint(5, 99, (6,))
    left = torch.cat([torch.ones(3, dtype=torch.long), words])[None]
    with torch.no_grad():
        padded = ours(left, mask=left != 1).x_NH[3:]
        assert _difference(padded, ours(words, lengths=[6]).x_NH) <= BAR
