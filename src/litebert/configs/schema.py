"""What a preset says: one documented class for files, `--set`, `run.json` and the docs.

    [model]      the encoder                    [masking]    which tokens are masked
    [generator]  ELECTRA's second encoder       [optimizer]  LAMB or AdamW, learning rate, clipping
    [data]       input format, length, batch    [schedule]   warmup and decay
    [[stages]]   lengths and depths in turn     [evaluation], [checkpoint], [log]
    [teacher]    a trained encoder to learn from

`objectives` says what is learned; each trains one head (see `objectives/`). Amounts of training are
fractions of the budget, so that one dial, `budget`, moves all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from litebert.base.budget import parse_budget
from litebert.base.errors import LitebertError, did_you_mean
from litebert.base.runtime import Precision
from litebert.base.settings import Settings, merge
from litebert.corpus.loader import DataSettings
from litebert.corpus.sampling.input_formats import input_format
from litebert.model.config import EncoderConfig
from litebert.objectives.distillation import TeacherSettings
from litebert.objectives.masking import Masking
from litebert.objectives.registry import OBJECTIVES, TAUGHT, heads_of


class PresetData(DataSettings):
    """What one step sees."""

    batch_size: int = Field(
        default=4096, ge=1, description="sequences a step; by tokens: as many full ones"
    )
    micro_batch_tokens: int = Field(
        default=8192, ge=8, description="tokens of one forward pass; more are accumulated"
    )
    num_workers: int | None = Field(
        default=None,
        ge=0,
        description="processes that prefetch; by default one beside a GPU, else none",
    )

    @field_validator("input_format")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            input_format(name)
        except LitebertError as error:
            raise ValueError(str(error)) from None
        return name


Fraction = Annotated[float, Field(ge=0, lt=1)]


class OptimizerSettings(Settings):
    """How weights move. The defaults are ALBERT's."""

    name: Literal["lamb", "adamw"] = "lamb"
    learning_rate: float = Field(default=0.00176, gt=0, description="its peak, after warmup")
    reference_batch_size: int = Field(
        default=0,
        ge=0,
        description="batch size of that rate; others scale it by the square root; 0: never",
    )
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: float = Field(default=1e-6, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    bias_correction: bool = Field(default=False, description="AdamW's; Google's code has none")
    pair_head_lr_factor: float = Field(
        default=1.0, gt=0, le=1,
        description="of the learning rate, for the pooler and the sentence-pair head: they see one "
        "example a sequence, and in small batches more is noise to them",
    )  # fmt: skip
    averaging: float = Field(
        default=0.0, ge=0, lt=1,
        description="decay of a moving average of the weights, which becomes the model: 0.999; "
        "0 for none",
    )  # fmt: skip
    gradient_clipping: float = Field(
        default=1.0, ge=0, description="largest global norm of the gradients; 0 clips nothing"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.name == "lamb" and self.bias_correction:
            raise ValueError("bias_correction is AdamW's; LAMB has none here, as in Google's code")
        return self


class ScheduleSettings(Settings):
    """The learning rate over time, in fractions of the budget."""

    warmup: float = Field(
        default=0.025, ge=0, lt=1, description="fraction of the budget with a rising rate"
    )
    decay_power: float = Field(default=1.0, ge=0, description="1 is a linear decay, 0 none")
    continuous: bool = Field(default=True, description="off: Google's decay, counted from step 0")


class StageSettings(Settings):
    """A fraction of the budget with a length, batch size, depth or masking of its own."""

    fraction: float = Field(gt=0, le=1)
    max_length: int | None = Field(default=None, ge=8)
    batch_size: int | None = Field(default=None, ge=1)
    depth: int | None = Field(
        default=None, ge=1, description="layers to run; needs a shared encoder"
    )
    mask_fraction: float | None = Field(
        default=None, gt=0, lt=1,
        description="of tokens that are masked, instead of masking.fraction (evaluations keep it)",
    )  # fmt: skip


class EvaluationSettings(Settings):
    """Evaluations on held-out text while training."""

    every: float = Field(
        default=0.1, gt=0, le=1, description="fraction of the budget between two evaluations"
    )
    sequences: int = Field(default=256, ge=1, description="held-out sequences, the same each time")


class CheckpointSettings(Settings):
    """What a killed run continues from."""

    every: int | None = Field(
        default=None, ge=1, description="steps between two checkpoints; by default three minutes"
    )
    keep: int = Field(default=2, ge=1, description="how many are kept")


class LogSettings(Settings):
    """What is written down."""

    every: int = Field(
        default=10, ge=1, description="steps that one line of metrics.jsonl averages"
    )
    tensorboard: bool = Field(default=False, description="also TensorBoard's event files")


class DistributedSettings(Settings):
    """Several processes, one run."""

    timeout: float = Field(
        default=300.0, ge=1, le=86400,
        description="seconds after which a rank that does not answer is lost; more than a "
        "checkpoint and an evaluation take",
    )  # fmt: skip


class Preset(Settings):
    """One run, described."""

    title: str = Field(description="one line on what this is")
    objectives: tuple[str, ...] = Field(
        description="what is learned: " + ", ".join([*OBJECTIVES, *TAUGHT])
    )
    budget: str = Field(default="125000steps", description="how long: 30m, 200Mtok or 125000steps")
    seed: int = Field(default=0, ge=0, lt=2**63)
    initialization: Literal["truncated_normal", "corpus", "corpus_tokens"] = Field(
        default="truncated_normal",
        description="the paper's; or values counted from the corpus, which small models learn from "
        "sooner; or of tokens only, not of the order of sentences, to compare objectives by",
    )
    precision: Precision = Field(
        default="auto",
        description="bf16 where that is faster (AMX, AMD from Zen 4 on, GPUs), else fp32",
    )
    activation_checkpointing: bool = Field(
        default=False, description="less memory, a third more work"
    )
    discriminator_weight: float = Field(default=50.0, gt=0, description="of ELECTRA's loss")
    model: EncoderConfig = Field(description="the encoder that is kept (ELECTRA's discriminator)")
    generator: EncoderConfig | None = Field(default=None, description="ELECTRA's generator")
    teacher: TeacherSettings | None = Field(
        default=None, description="a trained encoder to learn from (litebert distill)"
    )
    data: PresetData = PresetData()
    masking: Masking = Masking()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    stages: tuple[StageSettings, ...] = Field(
        default=(), description="in turn; their fractions add up to 1"
    )
    evaluation: EvaluationSettings = EvaluationSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    log: LogSettings = LogSettings()
    distributed: DistributedSettings = DistributedSettings()

    @model_validator(mode="before")
    @classmethod
    def _generator_inherits(cls, tree: Any) -> Any:
        if isinstance(tree, Mapping) and isinstance(tree.get("generator"), Mapping):
            model = tree.get("model")
            tree = {
                **tree,
                "generator": merge(model if isinstance(model, Mapping) else {}, tree["generator"]),
            }
        return tree

    @field_validator("budget")
    @classmethod
    def _budget(cls, text: str) -> str:
        try:
            parse_budget(text)
        except LitebertError as error:
            raise ValueError(str(error)) from None
        return text

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads that the objectives train."""
        return heads_of(self.objectives)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name in self.objectives:
            if name not in OBJECTIVES and name not in TAUGHT:
                known = [*OBJECTIVES, *TAUGHT]
                raise ValueError(f"unknown objective {name!r}; {did_you_mean(name, known)}")
            if name in TAUGHT and self.teacher is None:
                raise ValueError(f"{name} needs a [teacher] to learn from")
            if self.objectives.count(name) > 1:
                raise ValueError(f"objectives has {name!r} more than once")
        if not self.objectives:
            raise ValueError("objectives is empty: name what to learn, say ['masked_lm']")
        if "replaced_token" in self.objectives and self.generator is None:
            raise ValueError("replaced_token needs a [generator] that replaces tokens")
        self._check_teacher()
        if "replaced_token" in self.objectives and len(self.objectives) > 1:
            raise ValueError("replaced_token stands alone: its generator learns masked_lm")
        self._check_input_format()
        self._check_stages()
        return self

    def _check_teacher(self) -> None:
        if self.teacher is None:
            return
        if not set(self.objectives) & set(TAUGHT):
            raise ValueError(f"a [teacher] teaches {', '.join(TAUGHT)}: name one in objectives")
        for name in self.teacher.weights:
            if name not in TAUGHT:
                raise ValueError(f"teacher.weights.{name}: {did_you_mean(name, TAUGHT)}")

    def _check_input_format(self) -> None:
        have = input_format(self.data.input_format).negatives
        for name in self.objectives:
            needed = OBJECTIVES[name].negatives if name in OBJECTIVES else None
            if needed is not None and needed != have:
                raise ValueError(
                    f"data.input_format {self.data.input_format!r} gives nothing to decide for "
                    f"{name}: choose 'albert' for sentence_order or 'bert' for next_sentence, or "
                    f"take {name} out of objectives"
                )

    def _check_stages(self) -> None:
        total = sum(stage.fraction for stage in self.stages)
        if self.stages and abs(total - 1) > 1e-6:
            raise ValueError(f"stages: fractions add up to {total:g}, expected 1")
        for stage in self.stages:
            if stage.depth and not self.model.depth_is_free:
                raise ValueError(
                    f"stages: depth {stage.depth} needs an encoder whose layers are all shared; "
                    "this one would leave layers of its own untrained"
                )
        lengths = [stage.max_length or self.data.max_length for stage in self.stages]
        longest, most = max(lengths or [self.data.max_length]), self.model.longest_sequence
        if longest > most:
            raise ValueError(
                f"data.max_length {longest} is more than the model's {most} positions "
                "(model.max_position_embeddings)"
            )
