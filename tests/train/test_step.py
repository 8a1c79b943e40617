"""One big batch, the same batch in parts, the same batch over ranks: one loss, one gradient.

Every denominator is that of the whole batch: masked tokens, sentence pairs, span-boundary tokens,
tokens to judge; also where a part or a rank has none of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from litebert.base.batches import Batch, concatenate, split_by_tokens
from litebert.configs.schema import Preset
from litebert.corpus.loader import Loader
from litebert.corpus.store import Store
from litebert.model.inputs import to_inputs
from litebert.objectives.learner import Learner
from litebert.objectives.masking import Masker
from litebert.train.build import build_learner, fit_to_corpus
from litebert.train.distributed import CPU, DistributedGroup
from litebert.train.optimizer import build_optimizer
from litebert.train.stages import resolve_stages
from litebert.train.step import StepResult, TrainingStep
from litebert.train.threads import Threads, threads_for
from tests.train.runs import small, write_store

SEQUENCES = 32
NEAR = 1e-6  # relative, in float32
KINDS = ("albert-base", "bert-base", "roberta-base", "electra-small", "spanbert-base")
Change = Callable[[Batch], Batch]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store([write_store(tmp_path_factory.mktemp("corpus"))])


def still(name: str, store: Store) -> Preset:
    """A preset without dropout, for a batch of 32."""
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    changes = {
        "model": quiet,
        "data": {"batch_size": SEQUENCES, "batch_by": "sequences", "max_length": 48},
    }
    if name.startswith("electra"):
        changes["generator"] = quiet
    return fit_to_corpus(small(name, **changes), store)


def a_batch(preset: Preset, store: Store) -> Batch:
    """The first batch of a run."""
    masker = Masker(preset.masking, store.tokenizer, np.ones(store.tokenizer.vocab_size, int))
    return next(Loader(store, resolve_stages(preset)[0].loading, masker))


def stepper(
    preset: Preset, group: DistributedGroup, micro_batch_tokens: int = 10**6
) -> TrainingStep:
    """A step that computes gradients and leaves the weights as they are."""
    learner = build_learner(preset, CPU, (None, None), print)
    optimizer = build_optimizer(learner, preset.optimizer)
    return TrainingStep(
        learner,
        optimizer,
        group,
        gradient_clipping=0,
        micro_batch_tokens=micro_batch_tokens,
        seed=0,
        precision="fp32",
    )


@dataclass(frozen=True)
class Rank(DistributedGroup):
    """One of two ranks, run one after the other: it knows what both would have summed."""

    totals: list[float] = field(default_factory=list)

    def all_reduce_numbers(self, numbers: Sequence[float]) -> list[float]:
        return list(self.totals)

    def all_reduce(self, tensor: Tensor) -> None:
        """The test does."""


def loss_of(learner: Learner, result: StepResult) -> float:
    """The loss of a step from what it reports."""
    rows = zip(learner.objectives, result.sums.rows(), strict=True)
    return sum(
        o.weight * sums["loss"] / (count + o.count_offset) for o, (_, count, sums) in rows if count
    )


def whole(preset: Preset, batch: Batch) -> tuple[float, Tensor]:
    """Loss and gradient of the batch at once."""
    step = stepper(preset, DistributedGroup())
    result = step(batch, 0, 0.0)
    return loss_of(step.learner, result), step.gradients.values.clone()


def in_parts(preset: Preset, batch: Batch, parts: int) -> tuple[float, Tensor]:
    """The same, accumulated."""
    tokens = -(-len(batch.ids) // parts)
    assert len(split_by_tokens(batch, tokens)) >= parts
    step = stepper(preset, DistributedGroup(), tokens)
    result = step(batch, 0, 0.0)
    return loss_of(step.learner, result), step.gradients.values.clone()


class Dividing(Threads):
    """Threads that divide even the smallest batch."""

    def parts(self, tokens: int) -> int:
        return self.most


def on_threads(preset: Preset, batch: Batch, threads: int) -> tuple[float, Tensor]:
    """The same, each thread a part."""
    step = stepper(preset, DistributedGroup())
    step.threads = Dividing(0, threads)
    result = step(batch, 0, 0.0)
    return loss_of(step.learner, result), step.gradients.values.clone()


def over_ranks(preset: Preset, shares: list[Batch]) -> tuple[float, Tensor]:
    """The same, each rank its share, added up."""
    learner = stepper(preset, DistributedGroup()).learner
    totals = [float(sum(row)) for row in zip(*map(learner.counts, shares), strict=True)]
    steps = [
        stepper(preset, Rank(rank, len(shares), CPU, totals=totals)) for rank in range(len(shares))
    ]  # fmt: skip
    results = [step(s, 0, 0.0) for step, s in zip(steps, shares, strict=True)]
    losses = [loss_of(learner, result) for result in results]
    return sum(losses), torch.stack([step.gradients.values for step in steps]).sum(0)


def halves(batch: Batch) -> list[Batch]:
    return [batch.slice(0, SEQUENCES // 2), batch.slice(SEQUENCES // 2, SEQUENCES)]


def assert_near(one: tuple[float, Tensor], other: tuple[float, Tensor]) -> None:
    assert one[0] == pytest.approx(other[0], rel=NEAR)
    assert ((one[1] - other[1]).norm() / other[1].norm()).item() < NEAR


def as_it_is(batch: Batch) -> Batch:
    return batch


def no_pairs_in_front(batch: Batch) -> Batch:
    """The first half has nothing to decide between."""
    labels = batch.labels.copy()
    labels[: SEQUENCES // 2] = -1
    return replace(batch, labels=labels)


def no_masks_in_front(batch: Batch) -> Batch:
    """The first half has no masked token, so no span either."""
    first = batch.starts[SEQUENCES // 2]
    kept = batch.positions >= first
    ids = batch.ids.copy()
    ids[batch.positions[~kept]] = batch.targets[~kept]
    return replace(batch, ids=ids, positions=batch.positions[kept], targets=batch.targets[kept])


def no_pairs_at_all(batch: Batch) -> Batch:
    """No pair is decided anywhere."""
    return replace(batch, labels=np.full_like(batch.labels, -1))


CASES = [
    *((name, as_it_is) for name in KINDS),
    *((name, no_masks_in_front) for name in ("albert-base", "electra-small", "spanbert-base")),
    ("albert-base", no_pairs_in_front),
    ("bert-base", no_pairs_in_front),
    ("albert-base", no_pairs_at_all),
]


@pytest.mark.parametrize(("name", "change"), CASES)
def test_parts_threads_and_ranks_change_nothing(name: str, change: Change, store: Store) -> None:
    preset = still(name, store)
    batch = change(a_batch(preset, store))
    assert len(batch) == SEQUENCES
    once = whole(preset, batch)
    assert once[1].norm() > 0
    assert_near(in_parts(preset, batch, 4), once)
    assert_near(on_threads(preset, batch, 3), once)
    assert_near(over_ranks(preset, halves(batch)), once)


@pytest.mark.parametrize("name", KINDS)
def test_a_rank_without_any_sequence(name: str, store: Store) -> None:
    preset = still(name, store)
    batch = a_batch(preset, store)
    assert_near(over_ranks(preset, [batch, batch.slice(0, 0)]), whole(preset, batch))


@pytest.mark.parametrize("name", KINDS)
def test_the_gradient_is_that_of_the_mean_losses(name: str, store: Store) -> None:
    """Against autograd on the losses written out: sums over counts, weights on top."""
    preset = still(name, store)
    batch = a_batch(preset, store)
    loss, gradient = whole(preset, batch)
    learner = build_learner(preset, CPU, (None, None), print)
    terms = learner(to_inputs(batch, CPU))
    counts = learner.counts(batch)
    names = [objective.name for objective in learner.objectives]
    denominators = [n + (o == "span_boundary") for n, o in zip(counts, names, strict=True)]
    weights = [50.0 if name == "replaced_token" else 1.0 for name in names]
    expected = sum(
        w * t.loss / n for w, t, n in zip(weights, terms, denominators, strict=True) if n
    )
    assert isinstance(expected, Tensor)
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=NEAR)
    reference = {n: p.grad for n, p in learner.named_parameters() if p.grad is not None}
    step = stepper(preset, DistributedGroup())
    step(batch, 0, 0.0)
    for parameter_name, parameter in step.learner.named_parameters():
        found = reference.get(parameter_name)
        assert parameter.grad is not None
        if found is None:
            assert not parameter.grad.any()
        else:
            torch.testing.assert_close(parameter.grad, found, rtol=1e-5, atol=1e-7)
    assert gradient.norm().item() == pytest.approx(
        torch.stack([g.norm() for g in reference.values()]).norm().item(), rel=1e-5
    )


def test_counts_are_those_of_the_batch(store: Store) -> None:
    preset = still("spanbert-base", store)
    batch = a_batch(preset, store)
    result = stepper(preset, DistributedGroup())(batch, 0, 0.0, scalars=[7.0])
    assert result.sums.counts[0] == len(batch.targets)
    assert 0 < result.sums.counts[1] <= len(batch.targets)
    assert result.scalars == [7.0]
    rows = {name: list(sums) for name, _, sums in result.sums.rows()}
    assert rows == {"masked_lm": ["loss", "correct"], "span_boundary": ["loss", "correct"]}


def test_dropout_is_a_function_of_seed_step_rank_and_part(store: Store) -> None:
    preset = fit_to_corpus(small("albert-base", data={"batch_size": 8}), store)
    batch = a_batch(preset, store)

    def gradient(number: int, rank: int = 0, noise: int = 0) -> Tensor:
        counts = [float(n) for n in stepper(preset, DistributedGroup()).learner.counts(batch)]
        step = stepper(preset, Rank(rank, 2, CPU, totals=counts))
        torch.manual_seed(noise)
        step(batch, number, 0.0)
        return step.gradients.values.clone()

    assert torch.equal(gradient(3), gradient(3, noise=99))
    assert not torch.equal(gradient(3), gradient(4))
    assert not torch.equal(gradient(3), gradient(3, rank=1))


def test_threads_repeat_to_the_bit_and_draw_apart(store: Store) -> None:
    preset = fit_to_corpus(small("albert-base", data={"batch_size": 8}), store)
    batch = a_batch(preset, store)
    twins = concatenate([batch, batch])  # both parts are the same text
    first, second = (on_threads(preset, twins, 2) for _ in range(2))
    assert torch.equal(first[1], second[1])
    seen: list[float] = []
    step = stepper(preset, DistributedGroup())
    step.threads = Dividing(0, 2)
    step.learner.register_forward_hook(lambda *found: seen.append(found[-1][0].loss.item()))
    step(twins, 0, 0.0)
    assert len(set(seen)) == 2


def test_an_error_of_a_thread_is_raised(store: Store) -> None:
    preset = still("albert-base", store)
    step = stepper(preset, DistributedGroup())
    step.threads = Dividing(0, 2)

    def fail(*_: object) -> None:
        raise MemoryError("no more")

    step.learner.register_forward_pre_hook(fail)
    cores = torch.get_num_threads()
    with pytest.raises(MemoryError, match="no more"):
        step(a_batch(preset, store), 0, 0.0)
    assert torch.get_num_threads() == cores


def test_an_error_after_the_threads_leaves_all_cores(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = torch.get_num_threads()
    step = stepper(preset := still("albert-base", store), DistributedGroup())
    step.threads, step.threads.cores = Dividing(0, 2), 2
    try:
        torch.set_num_threads(2)
        monkeypatch.setattr(step.optimizer, "step", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            step(a_batch(preset, store), 0, 1e-3)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(cores)


def test_one_thread_where_parts_would_not_pay(store: Store) -> None:
    learner = build_learner(still("albert-base", store), CPU, (None, None), print)
    try:
        torch.set_num_threads(2)
        assert [threads_for(learner, CPU).parts(n) for n in (100, 512, 10**6)] == [1, 2, 2]
        assert threads_for(learner, torch.device("meta")).parts(10**6) == 1
        assert Threads(10**9).parts(10**6) == 1
        learner.model.encoder.checkpointing = True
        assert threads_for(learner, CPU).parts(10**6) == 1
    finally:
        torch.set_num_threads(1)


def test_gradients_are_clipped_by_their_common_norm(store: Store) -> None:
    preset = still("albert-base", store)
    batch = a_batch(preset, store)
    step = stepper(preset, DistributedGroup())
    norm = step(batch, 0, 0.0).gradient_norm
    free = step.gradients.values.clone()
    step.gradient_clipping = norm / 4
    assert step(batch, 0, 0.0).gradient_norm == pytest.approx(norm)
    torch.testing.assert_close(step.gradients.values, free / 4, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_step_that_is_not_finite_is_not_applied(value: float, store: Store) -> None:
    preset = still("albert-base", store)
    batch = a_batch(preset, store)
    step = stepper(preset, DistributedGroup())
    step(batch, 0, 1e-3)
    first = next(step.learner.parameters())
    first.data[0, 0] = 0.0
    before = [parameter.detach().clone() for parameter in step.learner.parameters()]
    moments = [tensor.clone() for tensor in step.optimizer.state[first].values()]
    dense = step.learner.model.heads["masked_lm"].dense
    dense.register_forward_pre_hook(lambda _, inputs: (inputs[0] * value,))
    assert not step(batch, 1, 1e-3).applied
    for ours, parameter in zip(before, step.learner.parameters(), strict=True):
        assert torch.equal(ours, parameter)
    for ours, tensor in zip(moments, step.optimizer.state[first].values(), strict=True):
        assert torch.equal(ours, tensor)
