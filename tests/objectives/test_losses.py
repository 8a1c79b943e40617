"""The losses against slow, literal versions of the papers' formulas: values, gradients, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn

from litebert.base.batches import Batch, split_by_tokens
from litebert.base.errors import SettingsError
from litebert.model.config import EncoderConfig
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.objectives.masked_lm import MaskedLM
from litebert.objectives.registry import build_objectives, heads_of
from litebert.objectives.replaced_token import ReplacedToken, replace_tokens
from litebert.objectives.sentence_pairs import SentenceOrder
from litebert.objectives.span_boundary import MAX_PAIR_TARGETS, SpanBoundary, boundaries
from litebert.train.distributed import DistributedGroup
from litebert.train.step import TrainingStep
from tests.corpus.stores import SPECIAL, assert_distributed

CPU = torch.device("cpu")
VOCABULARY = 23
SIZE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 48,
    "initializer_range": 0.3,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 8},
    "bert": {"embedding_size": 12, "sharing": "none"},
    "roberta": {"embedding_size": 12, "sharing": "none", "pad_token_id": 1, "hidden_act": "gelu"},
    "electra": {"embedding_size": 8, "sharing": "none"},
}


def make_config(family: str, **changes: Any) -> EncoderConfig:
    return EncoderConfig(**{"family": family, **SIZE, **FAMILIES[family], **changes})


def make_model(config: EncoderConfig, heads: Sequence[str], seed: int = 0) -> Model:
    """A model in double precision whose every parameter is random."""
    model = Model.create(config, heads, seed=seed).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.add_(0.2 * noise)
    return model


def make_batch(
    texts: Sequence[Sequence[int]],
    masked: Sequence[Sequence[int]],
    labels: Sequence[int] | None = None,
    seed: int = 0,
) -> Batch:
    """[CLS] A [SEP] B [SEP] from token counts of segments; `masked` are places in a sequence."""
    chance = np.random.default_rng(seed)
    ids, types, inside, begins, lengths, positions = [], [], [], [], [], []
    for segments, places in zip(texts, masked, strict=True):
        start = len(ids)
        ids, types = [*ids, SPECIAL.cls], [*types, 0]
        inside, begins = [*inside, False], [*begins, False]
        for number, count in enumerate(segments):
            ids += [*chance.integers(5, VOCABULARY, count).tolist(), SPECIAL.sep]
            types += [number] * (count + 1)
            inside += [True] * count + [False]
            begins += [True] + [False] * count
        positions += [start + place for place in places]
        lengths.append(len(ids) - start)
    targets = np.array(ids, dtype=np.int32)[positions]
    hidden = np.array(ids, dtype=np.int32)
    hidden[positions] = SPECIAL.mask
    return Batch(
        ids=hidden,
        token_types=np.array(types, dtype=np.int8),
        is_text=np.array(inside, dtype=bool),
        segment_starts=np.array(begins, dtype=bool),
        lengths=np.array(lengths, dtype=np.int64),
        labels=np.array(labels or [-1] * len(lengths), dtype=np.int8),
        keys=chance.integers(0, 2**64, len(lengths), dtype=np.uint64),
        positions=np.array(positions, dtype=np.int64),
        targets=targets.astype(np.int32),
    )


def some_batch(labels: Sequence[int] | None = None) -> Batch:
    return make_batch(
        [[7, 5], [12], [3, 9], [20]],
        [[2, 3, 10], [1, 6, 7, 8], [], [4, 9, 10, 20]],
        labels or [1, -1, 0, 1],
    )


# Literal versions, sequence by sequence, token by token.


def tanh_gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def erf_gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu_of_head(model: Model, x: Tensor) -> Tensor:
    """Hugging Face has the erf form in RoBERTa's and ELECTRA's heads, Google tanh elsewhere."""
    return (erf_gelu if model.config.family in ("roberta", "electra") else tanh_gelu)(x)


def layer_norm(x: Tensor, norm: Any) -> Tensor:
    center = x - x.mean(-1, keepdim=True)
    spread = (center**2).mean(-1, keepdim=True)
    return center / torch.sqrt(spread + norm.eps) * norm.weight + norm.bias


def encoded(model: Model, batch: Batch, ids: Tensor | None = None) -> list[Tensor]:
    """Every sequence through the encoder on its own, (T, H) each."""
    tokens = torch.from_numpy(batch.ids).long() if ids is None else ids
    types = torch.from_numpy(batch.token_types).long()
    result = []
    for start, length in zip(batch.starts.tolist(), batch.lengths.tolist(), strict=True):
        part = slice(start, start + length)
        state = model(tokens[None, part], segments=types[None, part])
        result.append(state.x_NH)
    return result


def all_logits(model: Model, x: Tensor, head: Any) -> Tensor:
    """Vocabulary logits at every token of a sequence."""
    hidden = layer_norm(gelu_of_head(model, x @ head.dense.weight.T + head.dense.bias), head.norm)
    return hidden @ model.encoder.embeddings.token.weight.T + head.bias


def surprise(logits: Tensor, target: int) -> Tensor:
    """-log softmax at the target."""
    return torch.log(torch.exp(logits).sum()) - logits[target]


def zero() -> Tensor:
    return torch.zeros((), dtype=torch.float64)


def literal_masked_lm(model: Model, batch: Batch) -> tuple[Tensor, int]:
    """-sum of log p(original) over masked tokens, through the logits of all tokens."""
    head: Any = model.heads["masked_lm"]
    logits = torch.cat([all_logits(model, x, head) for x in encoded(model, batch)])
    loss, correct = zero(), 0
    for place, target in zip(batch.positions.tolist(), batch.targets.tolist(), strict=True):
        loss = loss + surprise(logits[place], target)
        correct += int(logits[place].argmax()) == target
    return loss, correct


def literal_sentence_pair(model: Model, batch: Batch) -> tuple[Tensor, int]:
    pooler, head = model.pooler, model.heads["sentence_pair"]
    assert isinstance(pooler, nn.Module)
    loss, correct = zero(), 0
    for x, label in zip(encoded(model, batch), batch.labels.tolist(), strict=True):
        if label < 0:
            continue
        first = x[0] @ pooler.dense.weight.T + pooler.dense.bias  # type: ignore[union-attr,operator]
        pooled = erf_gelu(first) if model.config.family == "electra" else torch.tanh(first)
        logits = pooled @ head.dense.weight.T + head.dense.bias  # type: ignore[union-attr,operator]
        loss = loss + surprise(logits, label)
        correct += int(logits.argmax()) == label
    return loss, correct


@dataclass(frozen=True)
class Asked:
    """A token that the span-boundary objective asks for; places are within the batch."""

    left: int
    right: int
    place: int
    token: int


def literal_boundaries(batch: Batch) -> list[Asked]:
    """SpanBERT: merged spans within a sequence, none at an edge, fifteen tokens of each at most."""
    masked, asked = set(batch.positions.tolist()), []
    for start, length in zip(batch.starts.tolist(), batch.lengths.tolist(), strict=True):
        place = start
        while place < start + length:
            if place not in masked:
                place += 1
                continue
            stop = place
            while stop in masked and stop < start + length:
                stop += 1
            if batch.is_text[place - 1] and batch.is_text[stop]:
                tokens = range(place, min(stop, place + 15))
                asked += [Asked(place - 1, stop, token - place, token) for token in tokens]
            place = stop
    return asked


def literal_span_boundary(model: Model, batch: Batch) -> tuple[Tensor, int]:
    """y = LN(gelu(W2 LN(gelu(W1 [x_(s-1); x_(e+1); p_(i-s+1)])))), decoded by the token table."""
    head: Any = model.heads["span_boundary"]
    x = torch.cat(encoded(model, batch))
    truth = dict(zip(batch.positions.tolist(), batch.targets.tolist(), strict=True))
    loss, correct = zero(), 0
    for one in literal_boundaries(batch):
        joined = torch.cat([x[one.left], x[one.right], head.position.weight[one.place]])
        first = layer_norm(erf_gelu(joined @ head.first.weight.T + head.first.bias),
                           head.first_norm)  # fmt: skip
        second = layer_norm(erf_gelu(first @ head.second.weight.T + head.second.bias),
                            head.second_norm)  # fmt: skip
        logits = second @ model.encoder.embeddings.token.weight.T + head.bias
        loss = loss + surprise(logits, truth[one.token])
        correct += int(logits.argmax()) == truth[one.token]
    return loss, correct


@dataclass(frozen=True)
class Detection:
    loss: Tensor
    correct: int
    true_positives: int
    positives: int


def literal_detection(model: Model, batch: Batch, sampled: Tensor) -> Detection:
    """-sum over all tokens of log D where original, log(1 - D) where replaced."""
    head: Any = model.heads["replaced_token"]
    truth = dict(zip(batch.positions.tolist(), batch.targets.tolist(), strict=True))
    loss, correct, true_positives, positives = zero(), 0, 0, 0
    tokens = torch.cat(encoded(model, batch, sampled))
    for place, x in enumerate(tokens):
        inner = tanh_gelu(x @ head.dense.weight.T + head.dense.bias)
        fake = torch.sigmoid(inner @ head.output.weight[0] + head.output.bias[0])
        replaced = place in truth and int(sampled[place]) != truth[place]
        loss = loss - torch.log(fake if replaced else 1 - fake)
        correct += bool(fake > 0.5) == replaced
        true_positives += replaced and bool(fake > 0.5)
        positives += replaced
    return Detection(loss, correct, true_positives, positives)


def assert_same_gradients(
    mine: Tensor, literal: Tensor, module: nn.Module, tolerance: float = 1e-8
) -> None:
    """Of two losses, for every parameter; one that has none has zeros."""
    parameters = list(module.parameters())
    ours = torch.autograd.grad(mine, parameters, allow_unused=True, materialize_grads=True)
    theirs = torch.autograd.grad(literal, parameters, allow_unused=True, materialize_grads=True)
    names = [name for name, _ in module.named_parameters()]
    assert any(gradient.abs().max() > 1e-3 for gradient in theirs)
    for name, one, two in zip(names, ours, theirs, strict=True):
        torch.testing.assert_close(
            one, two, rtol=tolerance, atol=tolerance, msg=lambda text, name=name: f"{name}: {text}"
        )


def term_of(objective: Any, model: Model, batch: Batch) -> tuple[Tensor, int]:
    inputs = to_inputs(batch, CPU)
    term = objective.term(model, inputs.encode(model), inputs)
    return term.loss, int(term.counts[0])


# Masked language.


@pytest.mark.parametrize("family", FAMILIES)
def test_masked_lm(family: str) -> None:
    single = family == "roberta"  # its samples have no segment of type 1
    types = 1 if single else 2
    model = make_model(make_config(family, type_vocab_size=types), ["masked_lm"])
    batch = some_batch()
    batch = replace(batch, token_types=np.zeros_like(batch.token_types)) if single else batch
    loss, correct = term_of(MaskedLM(), model, batch)
    literal, expected = literal_masked_lm(model, batch)
    torch.testing.assert_close(loss, literal, rtol=1e-10, atol=0)
    assert correct == expected
    assert MaskedLM().count(batch) == 11
    assert_same_gradients(loss, literal, model)


def test_masked_lm_counts_correct_predictions() -> None:
    model = make_model(make_config("albert"), ["masked_lm"])
    batch = some_batch()
    head: Any = model.heads["masked_lm"]
    with torch.no_grad():
        head.bias.zero_()[9] = 1e4
    assert term_of(MaskedLM(), model, batch)[1] == (batch.targets == 9).sum()
    lucky = replace(batch, targets=np.full_like(batch.targets, 9))
    assert term_of(MaskedLM(), model, lucky)[1] == 11


def test_masked_lm_of_nothing() -> None:
    model = make_model(make_config("albert"), ["masked_lm"])
    batch = make_batch([[4, 4], [6]], [[], []])
    loss, correct = term_of(MaskedLM(), model, batch)
    assert (loss.item(), correct, MaskedLM().count(batch)) == (0, 0, 0)


# Sentence pairs.


@pytest.mark.parametrize("family", ["albert", "bert", "electra"])
def test_sentence_pair(family: str) -> None:
    model = make_model(make_config(family), ["sentence_pair"])
    batch = some_batch()
    objective = SentenceOrder()
    loss, correct = term_of(objective, model, batch)
    literal, expected = literal_sentence_pair(model, batch)
    torch.testing.assert_close(loss.double(), literal, rtol=1e-6, atol=0)
    assert correct == expected
    assert objective.count(batch) == 3
    assert_same_gradients(loss, literal, model, tolerance=1e-5)


def test_unlabelled_pairs_are_not_asked() -> None:
    model = make_model(make_config("albert"), ["sentence_pair"])
    batch = make_batch([[5, 5], [7], [4, 3]], [[], [], []], [0, -1, 1])
    objective = SentenceOrder()
    without, _ = term_of(objective, model, make_batch([[5, 5]], [[]], [0]))
    alone = batch.slice(2, 3)
    loss, _ = term_of(objective, model, batch)
    torch.testing.assert_close(loss, without + term_of(objective, model, alone)[0])


def test_no_labelled_pair_at_all() -> None:
    model = make_model(make_config("albert"), ["sentence_pair"])
    batch = some_batch([-1, -1, -1, -1])
    objective = SentenceOrder()
    loss, correct = term_of(objective, model, batch)
    assert (loss.item(), correct, objective.count(batch)) == (0, 0, 0)
    gradients = torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True,
                                    allow_unused=True)  # fmt: skip
    assert all((gradient == 0).all() for gradient in gradients)


# Span boundaries.


def found_boundaries(batch: Batch) -> list[Asked]:
    left, right, place, masked = (column.tolist() for column in boundaries(batch))
    tokens = batch.positions[masked].tolist()
    return [Asked(*row) for row in zip(left, right, place, tokens, strict=True)]


@pytest.mark.parametrize(
    ("masked", "asked"),
    [
        ([2], [(1, 3, 0, 2)]),
        ([2, 3], [(1, 4, 0, 2), (1, 4, 1, 3)]),  # adjacent tokens are one span
        ([2, 4], [(1, 3, 0, 2), (3, 5, 0, 4)]),  # one token between: two spans
        ([1, 2], []),  # touches the beginning of the text
        ([29, 30], []),  # touches its end
        ([1, 5, 30], [(4, 6, 0, 5)]),
        (list(range(1, 31)), []),
        (list(range(5, 22)), [(4, 22, place, 5 + place) for place in range(15)]),
        ([], []),
    ],
)
def test_which_spans_are_asked(masked: list[int], asked: list[tuple[int, ...]]) -> None:
    batch = make_batch([[30]], [masked])
    assert found_boundaries(batch) == [Asked(*row) for row in asked]
    assert SpanBoundary().count(batch) == len(asked)


def test_a_segments_edge_is_an_edge_too() -> None:
    batch = make_batch([[4, 4], [5]], [[4, 6], [2]])
    assert found_boundaries(batch) == [Asked(12, 14, 0, 13)]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_boundaries_of_any_batch(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.lists(st.integers(1, 24), min_size=1, max_size=2), min_size=1,
                               max_size=4))  # fmt: skip
    masked = []
    for segments in texts:
        whole = make_batch([segments], [[]])
        chosen = data.draw(st.lists(st.booleans(), min_size=len(whole.ids),
                                    max_size=len(whole.ids)))  # fmt: skip
        masked.append(np.flatnonzero(whole.is_text & np.array(chosen)).tolist())
    batch = make_batch(texts, masked)
    found = found_boundaries(batch)
    assert found == literal_boundaries(batch)
    assert all(one.place < MAX_PAIR_TARGETS == 15 for one in found)
    parts = [SpanBoundary().count(part) for part in split_by_tokens(batch, 20)]
    assert sum(parts) == SpanBoundary().count(batch) == len(found)


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_span_boundary(family: str) -> None:
    model = make_model(make_config(family), ["span_boundary"])
    masked = [[3, 4, 5], [*range(2, 20), 25], [1, 2, 5, 9]]
    batch = make_batch([[9], [30], [9]], masked)
    loss, correct = term_of(SpanBoundary(), model, batch)
    literal, expected = literal_span_boundary(model, batch)
    torch.testing.assert_close(loss, literal, rtol=1e-10, atol=0)
    assert correct == expected
    assert SpanBoundary().count(batch) == 3 + 15 + 1 + 1
    assert_same_gradients(loss, literal, model)


def test_no_span_with_boundaries() -> None:
    model = make_model(make_config("bert"), ["span_boundary"])
    for masked in ([[1], [9]], [[], []]):
        batch = make_batch([[5], [9]], masked)
        loss, correct = term_of(SpanBoundary(), model, batch)
        assert (loss.item(), correct, SpanBoundary().count(batch)) == (0, 0, 0)


# ELECTRA.


def make_electra(seed: int = 0, weight: float = 50.0) -> Learner:
    """A discriminator and a generator of half its width, with one set of embeddings."""
    model = make_model(make_config("electra"), ["replaced_token"], seed)
    small = make_config("electra", hidden_size=6, num_attention_heads=1, intermediate_size=10)
    generator = make_model(small, ["masked_lm"], seed + 1)
    return Learner(model, build_objectives(["replaced_token"], weight), generator)


def test_embeddings_are_shared() -> None:
    learner = make_electra()
    assert learner.generator is not None
    mine, theirs = learner.generator.encoder.embeddings, learner.model.encoder.embeddings
    for name, tensor in theirs.named_parameters():
        assert mine.get_parameter(name) is tensor
    names = [name for name, _ in learner.named_parameters()]
    assert sum(".embeddings." in name for name in names) == len(list(theirs.parameters()))
    assert not any(name.startswith("generator.encoder.embeddings") for name in names)


def test_embeddings_of_other_shapes_cannot_be_shared() -> None:
    model = make_model(make_config("electra"), ["replaced_token"])
    other = make_model(make_config("electra", vocab_size=VOCABULARY + 1), ["masked_lm"])
    with pytest.raises(SettingsError, match="cannot be shared"):
        Learner(model, [ReplacedToken()], other)


def test_replaced_token_and_its_generator() -> None:
    learner, batch = make_electra(), some_batch()
    assert learner.generator is not None
    inputs = to_inputs(batch, CPU)
    first, second = learner(inputs)
    literal, correct = literal_masked_lm(learner.generator, batch)
    torch.testing.assert_close(first.loss, literal, rtol=1e-10, atol=0)
    assert int(first.counts[0]) == correct
    assert learner.objectives[0].counters == ("correct",)
    sampled = replace_tokens(learner.generator, inputs)[1].ids
    detection = literal_detection(learner.model, batch, sampled)
    torch.testing.assert_close(second.loss.double(), detection.loss, rtol=1e-6, atol=0)
    assert learner.objectives[1].counters == ("correct", "true_positives", "positives")
    found = tuple(int(count) for count in second.counts)
    assert found == (detection.correct, detection.true_positives, detection.positives)
    assert 0 < detection.positives <= len(batch.positions)
    assert_same_gradients(first.loss + 50 * second.loss, literal + 50 * detection.loss, learner,
                          tolerance=1e-4)  # fmt: skip


def test_only_masked_tokens_are_replaced_and_no_mask_is_left() -> None:
    learner, batch = make_electra(), some_batch()
    assert learner.generator is not None
    _, inputs = replace_tokens(learner.generator, to_inputs(batch, CPU))
    kept = np.ones(len(batch.ids), dtype=bool)
    kept[batch.positions] = False
    assert (inputs.ids.numpy()[kept] == batch.ids[kept]).all()
    assert (inputs.batch.ids == batch.ids).all()


def test_names_weights_and_counts_of_electra() -> None:
    learner, batch = make_electra(), some_batch()
    assert [one.name for one in learner.objectives] == ["masked_lm", "replaced_token"]
    assert [one.weight for one in learner.objectives] == [1, 50]
    assert [one.count_offset for one in learner.objectives] == [0, 0]
    assert learner.counts(batch) == [len(batch.positions), len(batch.ids)]
    assert make_electra(weight=7).objectives[1].weight == 7
    assert list(learner.folders()) == ["model", "generator"]


def test_detection_gives_the_generator_no_gradient() -> None:
    learner = make_electra()
    _, detection = learner(to_inputs(some_batch(), CPU))
    own = {n: p for n, p in learner.named_parameters() if n.startswith("generator.")}
    assert own
    gradients = torch.autograd.grad(detection.loss, list(own.values()), allow_unused=True)
    assert all(gradient is None for gradient in gradients)


def test_gradients_of_both_losses_add_up_in_the_embeddings() -> None:
    learner = make_electra()
    first, second = learner(to_inputs(some_batch(), CPU))
    shared = list(learner.model.encoder.embeddings.parameters())
    one = torch.autograd.grad(first.loss, shared, retain_graph=True)
    two = torch.autograd.grad(second.loss, shared, retain_graph=True)
    both = torch.autograd.grad(first.loss + 50 * second.loss, shared)
    for a, b, sum_ in zip(one, two, both, strict=True):
        assert a.abs().max() > 0
        assert b.abs().max() > 0
        torch.testing.assert_close(sum_, a + 50 * b, rtol=1e-5, atol=1e-5)


def with_favourite(learner: Learner, piece: int) -> Learner:
    """The generator says nothing but this."""
    assert learner.generator is not None
    head: Any = learner.generator.heads["masked_lm"]
    with torch.no_grad():
        head.bias.fill_(-1e4)[piece] = 1e4
    return learner


def test_a_sample_that_is_correct_counts_as_original() -> None:
    learner, batch = with_favourite(make_electra(), 9), some_batch()
    lucky = replace(batch, targets=np.full_like(batch.targets, 9))
    _, detection = learner(to_inputs(lucky, CPU))
    assert int(detection.counts[2]) == 0
    unlucky = replace(batch, targets=np.full_like(batch.targets, 8))
    _, detection = learner(to_inputs(unlucky, CPU))
    assert int(detection.counts[2]) == len(batch.positions)
    half = replace(batch, targets=np.where(np.arange(11) < 5, 9, 8).astype(np.int32))
    _, detection = learner(to_inputs(half, CPU))
    assert int(detection.counts[2]) == 6


def many_alike(count: int) -> Batch:
    """One sequence again and again, each with a name of its own."""
    one = make_batch([[6]], [[2, 3, 5]])
    places = np.arange(count)[:, None] * len(one.ids) + one.positions
    columns = ("ids", "token_types", "is_text", "segment_starts", "lengths", "labels", "targets")
    return Batch(
        **{name: np.tile(getattr(one, name), count) for name in columns},
        keys=np.random.default_rng(5).integers(0, 2**64, count, dtype=np.uint64),
        positions=places.ravel(),
    )


def test_samples_follow_the_generators_softmax() -> None:
    learner, count = make_electra(), 50_000
    generator, batch = learner.generator, many_alike(count)
    assert generator is not None
    with torch.no_grad():
        _, inputs = replace_tokens(generator, to_inputs(batch, CPU))
        (x,) = encoded(generator, batch.slice(0, 1))
        shares = all_logits(generator, x, generator.heads["masked_lm"]).softmax(-1)
    sampled = inputs.ids.view(count, -1)[:, [2, 3, 5]]
    for column, place in enumerate((2, 3, 5)):
        found = np.bincount(sampled[:, column].numpy(), minlength=VOCABULARY)
        assert_distributed(found, shares[place].numpy() * count)
    table = np.zeros((VOCABULARY, VOCABULARY))  # neighbours are drawn independently
    np.add.at(table, (sampled[:, 0].numpy(), sampled[:, 1].numpy()), 1)
    expected = np.outer(shares[2].numpy(), shares[3].numpy()) * count
    enough = expected >= 5
    rest, expected_rest = table[~enough].sum(), expected[~enough].sum()
    assert_distributed([*table[enough], rest], [*expected[enough], expected_rest])


@pytest.mark.parametrize("tokens", [1, 20, 31, 1000])
def test_samples_do_not_depend_on_how_a_batch_is_cut(tokens: int) -> None:
    learner, batch = make_electra(), some_batch()
    assert learner.generator is not None
    whole = replace_tokens(learner.generator, to_inputs(batch, CPU))[1].ids
    parts = [replace_tokens(learner.generator, to_inputs(part, CPU))[1].ids
             for part in split_by_tokens(batch, tokens)]  # fmt: skip
    assert torch.equal(whole, torch.cat(parts))
    with torch.no_grad():
        assert torch.equal(whole, replace_tokens(learner.generator, to_inputs(batch, CPU))[1].ids)


def test_names_decide_the_samples() -> None:
    learner, batch = make_electra(), many_alike(50)
    assert learner.generator is not None
    rows = replace_tokens(learner.generator, to_inputs(batch, CPU))[1].ids.view(50, -1)
    assert len({tuple(row) for row in rows.tolist()}) > 25
    other = replace(batch, keys=batch.keys + np.uint64(1))
    assert not torch.equal(
        rows.flatten(), replace_tokens(learner.generator, to_inputs(other, CPU))[1].ids
    )


# A whole step: sums over counts.


def stepped(learner: Learner, batch: Batch, micro_batch_tokens: int = 10_000) -> list[Tensor]:
    """The gradients of one step that moves nothing."""
    optimizer = torch.optim.SGD(learner.parameters(), lr=0.0)
    step = TrainingStep(
        learner, optimizer, DistributedGroup(), gradient_clipping=0.0,
        micro_batch_tokens=micro_batch_tokens, seed=0, precision="fp32",
    )  # fmt: skip
    assert step(batch, 0, 0.0).applied
    return [parameter.grad.clone() for parameter in learner.parameters()]  # type: ignore[union-attr]


def assert_step_equals(learner: Learner, batch: Batch, literal: Tensor, tolerance: float) -> None:
    theirs = torch.autograd.grad(literal, list(learner.parameters()), allow_unused=True,
                                 materialize_grads=True)  # fmt: skip
    for micro_batch_tokens in (10_000, 30, 1):
        mine = stepped(learner, batch, micro_batch_tokens)
        torch.testing.assert_close(mine, list(theirs), rtol=tolerance, atol=tolerance)


def test_albert_step_is_the_mean_over_masked_tokens_plus_the_mean_over_labelled_pairs() -> None:
    names = ["masked_lm", "sentence_order"]
    model = make_model(make_config("albert"), heads_of(names))
    learner, batch = Learner(model, build_objectives(names)), some_batch()
    assert [one.name for one in learner.objectives] == names
    masked, pairs = literal_masked_lm(model, batch)[0], literal_sentence_pair(model, batch)[0]
    assert_step_equals(learner, batch, masked / 11 + pairs / 3, 1e-5)


def test_a_step_without_labelled_pairs_learns_the_rest() -> None:
    names = ["masked_lm", "next_sentence"]
    model = make_model(make_config("bert"), heads_of(names))
    learner = Learner(model, build_objectives(names))
    assert learner.objectives[1].name == "next_sentence"
    batch = some_batch([-1, -1, -1, -1])
    assert_step_equals(learner, batch, literal_masked_lm(model, batch)[0] / 11, 1e-8)


def test_spanbert_step_divides_by_pairs_and_one() -> None:
    names = ["masked_lm", "span_boundary"]
    model = make_model(make_config("bert"), heads_of(names))
    learner = Learner(model, build_objectives(names))
    batch = make_batch([[9], [30], [9]], [[3, 4, 5], [*range(2, 20), 25], [1, 2, 5, 9]])
    masked, spans = literal_masked_lm(model, batch)[0], literal_span_boundary(model, batch)[0]
    assert learner.counts(batch) == [26, 20]
    assert_step_equals(learner, batch, masked / 26 + spans / (20 + 1), 1e-8)


def test_a_step_without_boundaries_learns_the_rest() -> None:
    names = ["masked_lm", "span_boundary"]
    model = make_model(make_config("bert"), heads_of(names))
    learner = Learner(model, build_objectives(names))
    batch = make_batch([[9], [5]], [[1, 2], [5]])
    assert_step_equals(learner, batch, literal_masked_lm(model, batch)[0] / 3, 1e-8)


def test_electra_step_averages_detection_over_all_tokens_and_weighs_it_fifty() -> None:
    learner, batch = make_electra(), some_batch()
    assert learner.generator is not None
    sampled = replace_tokens(learner.generator, to_inputs(batch, CPU))[1].ids
    masked = literal_masked_lm(learner.generator, batch)[0]
    detection = literal_detection(learner.model, batch, sampled).loss
    literal = masked / len(batch.positions) + 50 * detection / len(batch.ids)
    assert_step_equals(learner, batch, literal, 1e-5)


def test_inputs_have_types_only_where_there_are_two() -> None:
    assert isinstance(to_inputs(some_batch(), CPU), Inputs)
    assert to_inputs(make_batch([[4], [6]], [[], []]), CPU).token_types is None
    types = to_inputs(some_batch(), CPU).token_types
    assert types is not None
    assert types.tolist() == some_batch().token_types.tolist()
