"""What a GPU would see, without one: no tensor on the wrong device, and the right numbers.

torch's fake tensors say they are on "cuda" and complain where devices are mixed, but only without
gradients on a build for CPUs; whole steps with their backward pass run on the meta device, whose
tensors have shapes and no values. The kernel for packed sequences is replaced by a plain one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from litebert.base.batches import Batch
from litebert.corpus.loader import Loader
from litebert.corpus.store import Store
from litebert.finetuning.batches import Batches
from litebert.finetuning.finetune import _task
from litebert.finetuning.runs import new_model
from litebert.model import attention
from litebert.model.inputs import to_inputs
from litebert.model.layout import Packed
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.objectives.masking import Masker
from litebert.tasks.data import TaskData
from litebert.text.tokenizer import load_tokenizer
from litebert.train.build import build_learner, fit_to_corpus
from litebert.train.stages import resolve_stages
from tests.tasks.small import TASKS, recipe, write_start
from tests.train.runs import small, write_store

PRESETS = ("albert-tiny", "bert-base", "roberta-base", "electra-small", "spanbert-base")
CUDA, META, CPU = torch.device("cuda"), torch.device("meta"), torch.device("cpu")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store([write_store(tmp_path_factory.mktemp("corpus"))])


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


def learner_and_batch(name: str, store: Store, **changes: Any) -> tuple[Learner, Batch]:
    preset = fit_to_corpus(small(name, **changes), store)
    masker = Masker(preset.masking, store.tokenizer, np.ones(store.info.vocab_size, dtype=np.int64))
    batch = next(Loader(store, resolve_stages(preset)[0].loading, masker))
    assert len(set(batch.lengths.tolist())) > 1
    return build_learner(preset, CPU, (None, None), lambda text: None), batch


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", PRESETS)
def test_every_objective_stays_on_its_device(name: str, dtype: torch.dtype, store: Store) -> None:
    assert_stays_on_its_device(*learner_and_batch(name, store), dtype)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_stays_on_its_device(name: str, start: Path) -> None:
    assert_stays_on_its_device(*task_and_batch(name, start), torch.float32)


def assert_stays_on_its_device(learner: Learner, batch: Batch, dtype: torch.dtype) -> None:
    attention.packed_index.cache_clear()
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        for module in learner.modules():
            for table in (module._parameters, module._buffers):
                for key, value in table.items():
                    if value is not None:
                        table[key] = _faked(mode, value, dtype)
        for training in (False, True):
            terms = learner.train(training)(to_inputs(batch, CUDA))
            assert {term.loss.device.type for term in terms} == {"cuda"}
            assert {v.device.type for term in terms for v in term.counts} <= {"cuda"}
    attention.packed_index.cache_clear()


def task_and_batch(name: str, start: Path) -> tuple[Learner, Batch]:
    wanted, examples, _ = TASKS[name]
    chosen = recipe(name)
    task = _task(TaskData(wanted, examples, {"dev": examples}), chosen, "truncate")
    model = new_model(Model.load(start), task, chosen, seed=1)
    features = task.features(examples, load_tokenizer(start))
    batch, _ = Batches(features.batch, 8, 0).next(0.0)
    return Learner(model, [task]), batch


def _faked(mode: FakeTensorMode, value: torch.Tensor, dtype: torch.dtype) -> Any:
    kind = dtype if value.is_floating_point() else value.dtype
    fake = torch.empty(value.shape, dtype=kind, device=CUDA)
    return torch.nn.Parameter(fake, False) if isinstance(value, torch.nn.Parameter) else fake


@pytest.mark.parametrize("name", PRESETS)
def test_a_whole_step_without_values(name: str, store: Store) -> None:
    assert_steps_without_values(*learner_and_batch(name, store))


@pytest.mark.parametrize("name", TASKS)
def test_a_whole_step_of_a_task_without_values(name: str, start: Path) -> None:
    assert_steps_without_values(*task_and_batch(name, start))


def assert_steps_without_values(learner: Learner, batch: Batch) -> None:
    attention.packed_index.cache_clear()
    learner = learner.to(META).train()
    sum(term.loss for term in learner(to_inputs(batch, META))).backward()
    reached = {n: p.grad.device.type for n, p in learner.named_parameters() if p.grad is not None}
    assert set(reached.values()) == {"meta"}
    assert any("attentions" in name for name in reached)
    attention.packed_index.cache_clear()


def loops(q: Any, k: Any, v: Any, ends: Any, _ends: Any, most: int, _most: int) -> torch.Tensor:
    """What the kernel computes, a sequence at a time."""
    found = []
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        assert end - start <= most
        scores = torch.einsum("qad,kad->aqk", q[start:end], k[start:end]) * q.shape[-1] ** -0.5
        found.append(torch.einsum("aqk,kad->qad", scores.softmax(-1), v[start:end]))
    return torch.cat(found)


@pytest.mark.parametrize("kernel", ["varlen", "padded"])
def test_packed_sequences_in_one_call_give_the_numbers_of_many(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths, chance = (5, 5, 2, 9, 1), torch.Generator().manual_seed(3)
    shape = (sum(lengths), 2, 4)
    one, other = (
        [x.clone().requires_grad_() for x in torch.randn((3, *shape), generator=chance).double()]
        for chance in (chance.clone_state(), chance.clone_state())
    )
    monkeypatch.setattr(attention, "_fits_varlen", lambda *_: kernel == "varlen")
    monkeypatch.setattr(attention, "_varlen_kernel", lambda: loops)
    packed = attention.attend_packed(*one, lengths, 0.0)
    apart = Packed(lengths).attend(*other, 0.0)
    torch.testing.assert_close(packed, apart, rtol=1e-12, atol=1e-12)
    weight = torch.randn(apart.shape, generator=chance).double()
    for found in (packed, apart):
        (found * weight).sum().backward()
    for mine, theirs in zip(one, other, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-12, atol=1e-12)


def test_the_kernel_is_taken_where_it_fits() -> None:
    low = torch.zeros(3, 2, 64, dtype=torch.bfloat16)
    assert attention._fits_varlen(low, 0.0)
    assert not attention._fits_varlen(low, 0.1)
    assert not attention._fits_varlen(low.float(), 0.0)
    assert attention._varlen_kernel() is not None
