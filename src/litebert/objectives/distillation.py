"""Distillation: the contract between a teacher, a trained encoder, and what is learned from it.

A teacher reads the text as it was before masking. What it says of tokens (relations, hidden states)
can be learned where student and teacher have one tokenizer, what it says of texts always.
The objectives are in relations.py, hidden_states.py and sentence_vectors.py; the teacher at work is
in train/teacher.py, as it takes the engine's kernels.

Shapes: B sequences, N tokens, H units of the teacher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Literal, Protocol

from pydantic import Field
from torch import Tensor, nn

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.base.ragged import IntArray
from litebert.base.settings import Settings
from litebert.model.config import EncoderConfig
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import Term

Encode = Callable[[Inputs], State]  # what the student makes of a batch, as it will be trained


class TeacherSettings(Settings):
    """A trained encoder, and how it teaches."""

    folder: str = Field(
        description="its model folder or run: ours, transformers' or sentence-transformers'"
    )
    layer: int | None = Field(
        default=None, ge=1,
        description="whose relations and hidden states are learned; by default the last",
    )  # fmt: skip
    relation_heads: int | None = Field(
        default=None, ge=1,
        description="parts that queries, keys and values are cut into, a divisor of both widths; "
        "by default the most that leave the teacher 24 units each",
    )  # fmt: skip
    weights: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict, description="of its objectives' losses, where they are not 1"
    )
    token_table: bool = Field(
        default=True,
        description="begin with the teacher's token table, its principal components in the "
        "student's columns, where they have one tokenizer",
    )
    precision: Literal["auto", "fp32", "bf16", "int8"] = Field(
        default="auto",
        description="that it computes in: bf16 where that is faster, else fp32; int8 is less exact",
    )
    cache_megabytes: int = Field(
        default=1000, ge=0,
        description="sentence vectors that are kept, so that a text is read once",
    )  # fmt: skip


class Teacher(Protocol):
    """What can be asked of a teacher, for a batch as it was before masking."""

    config: EncoderConfig
    same_tokens: bool  # whether it has the student's tokenizer

    def query_key_value(self, inputs: Inputs, layer: int) -> Tensor:
        """Queries, keys and values of a layer, counted from 1: (N, 3H)."""
        ...

    def hidden_states(self, inputs: Inputs, layer: int) -> Tensor:
        """Tokens after a layer, (N, H)."""
        ...

    def vectors(self, inputs: Inputs) -> Tensor:
        """One vector a sequence, (B, H), pooled as the teacher's folder says."""
        ...


class Distillation(nn.Module):
    """The base of objectives that learn from a teacher; their own weights are not kept."""

    name: str
    counters: tuple[str, ...] = ()
    count_offset = 0
    reads_layers = False  # whether it reads the states before the last
    needs_same_tokens = True

    def __init__(self, student: EncoderConfig, teacher: Teacher, settings: TeacherSettings) -> None:
        super().__init__()
        if self.needs_same_tokens and not teacher.same_tokens:
            raise SettingsError(
                f"objective {self.name!r} compares tokens, so the corpus must be in the teacher's: "
                f"run `litebert prepare` with --tokenizer {settings.folder}, or learn "
                "sentence_vectors alone"
            )
        self.weight = settings.weights.get(self.name, 1.0)
        self.layer = settings.layer or teacher.config.num_hidden_layers
        if self.layer > teacher.config.num_hidden_layers:
            raise SettingsError(
                f"teacher.layer {self.layer}: {settings.folder} has "
                f"{teacher.config.num_hidden_layers} layers"
            )
        self._teacher = (teacher,)  # in a tuple, so that it is no part of what learns

    @property
    def teacher(self) -> Teacher:
        return self._teacher[0]

    def prepare(self, samples: Iterator[Inputs], student: Encode) -> None:
        """Before the first step of a new run: what is to be known of some samples."""

    def count(self, batch: Batch) -> int:
        """How many answers a batch asks for."""
        raise NotImplementedError

    def reads(self, batch: Batch) -> IntArray | None:
        """The tokens whose encodings it reads; None for all."""
        return None

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """The summed loss."""
        raise NotImplementedError
