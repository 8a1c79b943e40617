"""What a GPU would see, without one: no tensor on the wrong device, and the right numbers.

torch's fake tensors say that they are on "cuda" and complain where devices are mixed or a value is
asked for, which a GPU would have to be waited for; on a build for CPUs only without gradients, and
not where tensors are moved there or indexed: those are made there instead. Whole steps with their
backward pass run on the meta device, whose tensors have shapes and no values. The kernel for
sequences of several lengths is replaced by a plain one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from litebert.base.batches import Batch
from litebert.corpus.loader import Loader
from litebert.corpus.store import Store
from litebert.finetuning.batches import Batches
from litebert.finetuning.exits import ExitLearner
from litebert.finetuning.finetune import _task
from litebert.finetuning.runs import new_model
from litebert.model import varlen
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.layout import Packed, Padded
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.objectives.masking import Masker
from litebert.objectives.registry import TAUGHT
from litebert.tasks.data import TaskData
from litebert.text.tokenizer import load_tokenizer
from litebert.train.build import build_learner, fit_to_corpus
from litebert.train.stages import resolve_stages
from tests.objectives import test_distillation
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


def pretraining(name: str, store: Store) -> tuple[Learner, Batch]:
    preset = fit_to_corpus(small(name), store)
    masker = Masker(preset.masking, store.tokenizer, np.ones(store.info.vocab_size, dtype=np.int64))
    batch = next(Loader(store, resolve_stages(preset)[0].loading, masker))
    return build_learner(preset, CPU, (None, None), lambda text: None), batch


def task(name: str, start: Path, exits: bool = False) -> tuple[Learner, Batch]:
    wanted, examples, _ = TASKS[name]
    chosen = recipe(name).model_copy(update={"exits": exits})
    found = _task(TaskData(wanted, examples, {"dev": examples}), chosen, "truncate")
    model = new_model(Model.load(start), found, chosen, seed=1)
    features = found.features(examples, load_tokenizer(start))
    batch, _ = Batches(features.batch, 8, 0).next(0.0)
    return (ExitLearner(model, found) if exits else Learner(model, [found])), batch


class Shapes:
    """A teacher whose answers are where they are asked for."""

    same_tokens = True
    config = test_distillation.config(12)

    def query_key_value(self, inputs: Inputs, layer: int) -> Tensor:
        return torch.zeros(len(inputs.ids), 36, device=inputs.ids.device)

    def hidden_states(self, inputs: Inputs, layer: int) -> Tensor:
        return torch.zeros(len(inputs.ids), 12, device=inputs.ids.device)

    def vectors(self, inputs: Inputs) -> Tensor:
        return torch.zeros(len(inputs.batch), 12, device=inputs.ids.device)


def taught(name: str) -> tuple[Learner, Batch]:
    student = Model.create(test_distillation.config(8), ("masked_lm",), seed=1)
    objective = TAUGHT[name](student.config, Shapes(), test_distillation.SETTINGS)
    return Learner(student, [objective]), test_distillation.batch()


@pytest.fixture(params=[*PRESETS, *TASKS, *TAUGHT])
def learner_and_batch(
    request: pytest.FixtureRequest, store: Store, start: Path
) -> tuple[Learner, Batch]:
    name = request.param
    if name in TAUGHT:
        return taught(name)
    return task(name, start) if name in TASKS else pretraining(name, store)


LOGICAL = {"__invert__": torch.logical_not, "__and__": torch.logical_and}


class WithoutCuda(TorchFunctionMode):
    """What a build for CPUs refuses even of fake tensors: moves, indexes, `~`, `&`, copies.

    Tensors that would come of it are made there, with the shape that the meta device knows.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is Tensor.to and args[0].device.type == "cpu":
            target = kwargs.get("device", args[1] if len(args) > 1 else None)
            dtype = target.dtype if isinstance(target, Tensor) else args[0].dtype
            device = target.device if isinstance(target, Tensor) else target
            if isinstance(device, str | torch.device) and torch.device(device).type == "cuda":
                return torch.empty(args[0].shape, dtype=dtype, device=CUDA)
        name = getattr(func, "__name__", "")
        if name in LOGICAL:
            return LOGICAL[name](*args)
        if name == "cross_entropy":
            args = tuple(map(_contiguous, args))
        if name == "__getitem__" and args[0].device.type == "cuda":
            found = args[0].to(META)[_on_meta(args[1])]
            return torch.empty(found.shape, dtype=found.dtype, device=CUDA)
        if name == "__setitem__" and args[0].device.type == "cuda":
            value = args[2]
            assert not isinstance(value, Tensor) or value.device.type == "cuda" or not value.dim()
            args[0].to(META)[_on_meta(args[1])] = _on_meta(value)
            return None
        return func(*args, **kwargs)


def _contiguous(x: Tensor) -> Tensor:
    if x.is_contiguous():
        return x
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _on_meta(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(_on_meta(part) for part in index)
    return index.to(META) if isinstance(index, Tensor) else index


def fake(learner: Learner, dtype: torch.dtype) -> None:
    """Have all weights say that they are on a GPU."""
    for module in learner.modules():
        for table in (module._parameters, module._buffers):
            for key, value in table.items():
                if value is not None:
                    kind = dtype if value.is_floating_point() else value.dtype
                    there: Any = torch.empty(value.shape, dtype=kind, device=CUDA)
                    table[key] = (
                        nn.Parameter(there, False) if table is module._parameters else there
                    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_objective_and_task_stays_on_its_device(
    learner_and_batch: tuple[Learner, Batch], dtype: torch.dtype
) -> None:
    learner, batch = learner_and_batch
    with FakeTensorMode(allow_non_fake_inputs=True), WithoutCuda(), torch.no_grad():
        fake(learner, dtype)
        for training in (False, True):
            terms = learner.train(training)(to_inputs(batch, CUDA))
            assert {term.loss.device.type for term in terms} == {"cuda"}
            assert {value.device.type for term in terms for value in term.counts} <= {"cuda"}


def test_fake_tensors_notice_a_wrong_device(store: Store) -> None:
    learner, batch = pretraining("albert-tiny", store)
    with FakeTensorMode(allow_non_fake_inputs=True), WithoutCuda(), torch.no_grad():
        fake(learner, torch.float32)
        bias: Any = learner.model.encoder.feed_forwards[0]
        bias.norm._parameters["bias"] = torch.zeros(32)
        with pytest.raises(RuntimeError, match="device"):
            learner(to_inputs(batch, CUDA))


def test_a_whole_step_without_values(learner_and_batch: tuple[Learner, Batch]) -> None:
    learner, batch = learner_and_batch
    learner = learner.to(META).train()
    losses = [term.loss for term in learner(to_inputs(batch, META))]
    torch.stack(losses).sum().backward()
    reached = {n: p.grad.device.type for n, p in learner.named_parameters() if p.grad is not None}
    assert set(reached.values()) == {"meta"}
    assert any("attentions" in name for name in reached)


def test_a_step_of_exits_without_values(start: Path) -> None:
    learner, batch = task("classify", start, exits=True)
    (term,) = learner.to(META).train()(to_inputs(batch, META))
    term.loss.backward()
    assert term.loss.device.type == "meta"


class CountedKernel:
    """What torch's kernel computes, a sequence at a time, and how often it was asked."""

    calls = 0

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, ends_q: Tensor, ends_k: Tensor, most_q: int,
        most_k: int,
    ) -> Tensor:  # fmt: skip
        self.calls += 1
        assert ends_q.dtype == ends_k.dtype == torch.int32
        assert ends_q.diff().max() <= most_q
        assert ends_k.diff().max() == most_k
        found = []
        for asked, seen in zip(_slices(ends_q), _slices(ends_k), strict=True):
            scores = torch.einsum("qad,kad->aqk", q[asked], k[seen]) * q.shape[-1] ** -0.5
            found.append(torch.einsum("aqk,kad->qad", scores.softmax(-1), v[seen]))
        return torch.cat(found)


def _slices(ends: Tensor) -> list[slice]:
    return [slice(*pair) for pair in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


READ = torch.tensor([0, 3, 6, 10, 11, 20, 21])  # nothing of the third sequence


@pytest.fixture(params=["kernel", "padded"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CountedKernel:
    stub = CountedKernel()
    monkeypatch.setattr(varlen, "fits_kernel", lambda *_: request.param == "kernel")
    monkeypatch.setattr(varlen, "_varlen_kernel", lambda: stub)
    return stub


@pytest.mark.parametrize("read", [None, READ])
@pytest.mark.parametrize("lengths", [(5, 5, 2, 9, 1), (11, 11)])
def test_one_call_gives_the_numbers_of_many(
    kernel: CountedKernel, lengths: tuple[int, ...], read: Tensor | None
) -> None:
    mine, theirs = projections(sum(lengths), read), projections(sum(lengths), read)
    grid = varlen.Grid.of(lengths, CPU)
    one = varlen.attend_at_once(mine, grid, None, 0.0, read)
    many = Packed(lengths).attend(theirs, 0.0, read)
    assert_equal(one, many, mine, theirs)


def test_one_call_sees_no_padding(kernel: CountedKernel) -> None:
    keys = torch.arange(11) < torch.tensor([[11], [4]])
    mine, theirs = projections(22, None), projections(22, None)
    one = varlen.attend_at_once(mine, varlen.Grid.of((11, 11), CPU), keys, 0.0, None)
    assert kernel.calls == 0  # which takes no mask
    assert_equal(one, Padded(2, 11, keys).attend(theirs, 0.0), mine, theirs)


def projections(tokens: int, read: Tensor | None) -> list[Tensor]:
    """Random ones, the same each time: of all tokens, or queries of those that are read."""
    chance = torch.Generator().manual_seed(3)
    counts = [(tokens, 3)] if read is None else [(len(read), 1), (tokens, 2)]
    shapes = [(*count, 2, 4) for count in counts]
    drawn = [torch.randn(shape, generator=chance, dtype=torch.float64) for shape in shapes]
    return [x.requires_grad_() for x in drawn]


def assert_equal(one: Tensor, many: Tensor, mine: list[Tensor], theirs: list[Tensor]) -> None:
    torch.testing.assert_close(one, many, rtol=1e-12, atol=1e-12)
    weight = torch.randn(many.shape, generator=torch.Generator().manual_seed(4)).double()
    for result in (one, many):
        (result * weight).sum().backward()
    for x, y in zip(mine, theirs, strict=True):
        torch.testing.assert_close(x.grad, y.grad, rtol=1e-12, atol=1e-12)


def test_the_kernel_is_taken_where_it_fits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call a layer, in half precision without dropout; else padded."""
    asked = []
    kernel: Any = varlen._varlen_kernel()
    monkeypatch.setattr(varlen, "_varlen_kernel", lambda: lambda *a: asked.append(1) or kernel(*a))
    for dtype, training, calls in (
        (torch.bfloat16, False, 2), (torch.bfloat16, True, 0), (torch.float32, False, 0),
    ):  # fmt: skip
        learner, batch = pretraining("albert-tiny", store)
        assert len(set(batch.lengths.tolist())) > 1
        asked.clear()
        with FakeTensorMode(allow_non_fake_inputs=True), WithoutCuda(), torch.no_grad():
            fake(learner, dtype)
            learner.train(training)(to_inputs(batch, CUDA))
        assert len(asked) == calls


def test_layouts_of_a_gpu_have_the_numbers_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = (5, 2, 9, 1)
    x = torch.randn(17, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    layout, grid = Packed(lengths), varlen.Grid.of(lengths, CPU)
    padded, real = layout.padded(x)
    torch.testing.assert_close(grid.pad(x), padded)
    torch.testing.assert_close(grid.real_BT, real)
    positions = grid.places_N % grid.longest + 2
    torch.testing.assert_close(positions, layout.positions(CPU, 2))
