"""Heads that only we have, against the formulas of their papers written out plainly."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from litebert.base.errors import SettingsError
from litebert.model.config import EncoderConfig
from litebert.model.heads import EXITS, HEADS
from litebert.model.model import Model

CONFIG = EncoderConfig(
    vocab_size=50, embedding_size=8, hidden_size=16, num_attention_heads=2, intermediate_size=24,
    num_hidden_layers=2, max_position_embeddings=32, initializer_range=0.3,
)  # fmt: skip


def _model(*heads: str) -> Model:
    return Model.create(CONFIG, heads, seed=2).eval()


def test_span_boundary_formula() -> None:
    model = _model("span_boundary")
    state = model(torch.randint(5, 50, (2, 9)))
    left, right, place = torch.tensor([2, 11]), torch.tensor([6, 14]), torch.tensor([1, 0])
    head = model.heads["span_boundary"]
    x = state.x_NH
    h = torch.cat([x[left], x[right], head.position.weight[place]], 1)
    for dense, norm in ((head.first, head.first_norm), (head.second, head.second_norm)):
        h = F.layer_norm(F.gelu(dense(h)), norm.normalized_shape, norm.weight, norm.bias, 1e-12)
    expected = h @ model.encoder.embeddings.token.weight.t() + head.bias
    torch.testing.assert_close(model.head("span_boundary")(state, left, right, place), expected)


@pytest.mark.parametrize("packed", [False, True])
def test_conditional_span_formula(packed: bool) -> None:
    model = _model("conditional_span")
    head = model.heads["conditional_span"]
    ids = torch.randint(5, 50, (2, 6))
    state = model(ids.flatten(), lengths=[6, 6]) if packed else model(ids)
    x = state.padded()[0]
    allowed = torch.ones(2, 6, dtype=torch.bool)
    allowed[:, 1:3] = False
    truth = torch.tensor([4, 5])
    found = model.head("conditional_span")(state, allowed, truth)
    beams = model.head("conditional_span")(state, allowed, beams=3)
    assert beams.end.shape == (2, 3, 6)
    assert beams.best_starts_BK is not None
    for row in range(2):
        start = (x[row] @ head.start.weight.t() + head.start.bias).squeeze(-1)
        start[1:3] = -1e30
        torch.testing.assert_close(found.start_BT[row], start)
        best = beams.best_starts_BK[row].tolist()
        assert best == start.topk(3).indices.tolist()
        for given, ends in [(int(truth[row]), found.end[row]),
                            *zip(best, beams.end[row], strict=True)]:  # fmt: skip
            pair = torch.cat([x[row], x[row, given].expand(6, -1)], 1)
            end = head.end(head.end_norm(torch.tanh(head.end_hidden(pair)))).squeeze(-1)
            torch.testing.assert_close(ends[allowed[row]], end[allowed[row]])
            assert (ends[1:3] < -1e29).all()
        summary = start.softmax(0) @ x[row]
        both = torch.tanh(head.answerable_hidden(torch.cat([summary, x[row, 0]])))
        torch.testing.assert_close(found.unanswerable_B[row], head.answerable(both).squeeze())


def test_masked_lm_loss_is_the_logits_loss() -> None:
    model = _model("masked_lm")
    state = model(torch.randint(5, 50, (3, 7)))
    positions, targets = torch.tensor([1, 9, 20]), torch.tensor([7, 8, 9])
    loss, correct = model.head("masked_lm").loss(state, positions, targets)
    logits = model.head("masked_lm")(state, positions)
    torch.testing.assert_close(loss, F.cross_entropy(logits, targets, reduction="sum"))
    assert correct == (logits.argmax(1) == targets).sum()
    torch.testing.assert_close(model.head("masked_lm")(state)[positions], logits)


def test_a_head_that_is_not_there_is_named() -> None:
    model = _model("span")
    with pytest.raises(SettingsError, match=r"no classification head \(heads here: span\)"):
        model.head("classification")(model(torch.ones(1, 2, dtype=torch.long)))
    with pytest.raises(SettingsError, match="did you mean 'span'"):
        _model("spam")


@pytest.mark.parametrize("head", HEADS)
def test_every_head_learns(head: str) -> None:
    """A gradient reaches every parameter of a head and the token table below it."""
    model = Model.create(CONFIG, (head,), seed=2)
    state = model(torch.randint(5, 50, (4, 7)))
    arguments = {
        "span_boundary": (torch.tensor([1]), torch.tensor([4]), torch.tensor([2])),
        "conditional_span": (torch.ones(4, 7, dtype=torch.bool), torch.tensor([1, 2, 3, 4])),
        **dict.fromkeys((name for name in HEADS if name.endswith(EXITS)), (1,)),
    }.get(head, ())
    output = model.head(head)(state, *arguments)
    tensors = output if isinstance(output, tuple) else [output]
    loss = sum(tensor.float().square().sum() for tensor in tensors if tensor is not None)
    loss.backward()
    for name, parameter in model.heads.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    assert model.encoder.embeddings.token.weight.grad.abs().sum() > 0
