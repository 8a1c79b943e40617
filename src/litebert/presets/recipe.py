"""What a preset says: one documented class for files, `--set`, `run.json` and the docs.

    [model]      the encoder                    [masking]    what is hidden
    [generator]  ELECTRA's second encoder       [optimizer]  LAMB or AdamW, its rate and its scale
    [data]       arrangement, length, batch     [schedule]   warm-up and decay
    [[stages]]   lengths and depths in turn     [evaluation], [checkpoint], [log]

`heads` names the objectives: each pretraining head has one loss (see `objectives/`). Amounts of
training are shares of the budget, so that one dial, `budget`, moves all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from litebert.base.budget import parse_budget
from litebert.base.config import Settings, merge
from litebert.base.errors import LitebertError, did_you_mean
from litebert.base.runtime import Precision
from litebert.corpus.arrange import arrangement
from litebert.model.config import EncoderConfig
from litebert.objectives.masking import Masking

PRETRAINING_HEADS = ("masked_language", "sentence_pair", "replaced_token", "span_boundary")


class Data(Settings):
    """What one step sees."""

    arrangement: str = Field(
        default="albert", description="how sentences become samples: corpus/arrange"
    )
    length: int = Field(default=512, ge=8, description="tokens of a sequence at most")
    batch: int = Field(
        default=4096, ge=1, description="sequences a step; by tokens: as many full ones"
    )
    by: Literal["sequences", "tokens"] = Field(
        default="sequences", description="a fixed number of sequences, or of tokens, a step"
    )
    copies: int = Field(
        default=0,
        ge=0,
        description="static masking: as many fixed copies of the text; 0 is dynamic",
    )
    at_once: int = Field(
        default=8192, ge=8, description="tokens of one forward pass at most; more are accumulated"
    )
    workers: int | None = Field(
        default=None,
        ge=0,
        description="processes that load ahead; by default one beside a GPU, else none",
    )

    @field_validator("arrangement")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            arrangement(name)
        except LitebertError as error:
            raise ValueError(str(error)) from None
        return name


Share = Annotated[float, Field(ge=0, lt=1)]


class OptimizerSettings(Settings):
    """How weights move. The defaults are ALBERT's."""

    kind: Literal["lamb", "adamw"] = "lamb"
    rate: float = Field(default=0.00176, gt=0, description="the highest learning rate")
    reference_batch: int = Field(
        default=0, ge=0, description="the rate holds for this batch, others by the root; 0: for any"
    )
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: float = Field(default=1e-6, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    bias_correction: bool = Field(default=False, description="AdamW's; Google's code has none")
    clip: float = Field(default=1.0, ge=0, description="largest norm of all gradients; 0: any")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.kind == "lamb" and self.bias_correction:
            raise ValueError("bias_correction is AdamW's; LAMB has none here, as in Google's code")
        return self


class ScheduleSettings(Settings):
    """The rate over time, in shares of the budget."""

    warm_up: float = Field(
        default=0.025, ge=0, lt=1, description="share of the budget with a rising rate"
    )
    power: float = Field(default=1.0, ge=0, description="of the decay; 1 is linear, 0 none")
    continuous: bool = Field(default=True, description="off: Google's decay, counted from step 0")


class Stage(Settings):
    """A share of the budget with a length, batch or depth of its own."""

    share: float = Field(gt=0, le=1)
    length: int | None = Field(default=None, ge=8)
    batch: int | None = Field(default=None, ge=1)
    depth: int | None = Field(
        default=None, ge=1, description="layers to run; needs a shared encoder"
    )


class EvaluationSettings(Settings):
    """Looks at held-out text while training."""

    every: float = Field(
        default=0.1, gt=0, le=1, description="share of the budget between two looks"
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


class Preset(Settings):
    """One run, described."""

    title: str = Field(description="one line on what this is")
    heads: tuple[str, ...] = Field(description="the pretraining heads the model is trained with")
    budget: str = Field(default="125000steps", description="how long: 30m, 200Mtok or 125000steps")
    seed: int = Field(default=0, ge=0, lt=2**63)
    start: Literal["paper", "warm"] = Field(
        default="paper",
        description="initial values: the paper's, or those that learn sooner when small",
    )
    precision: Precision = Field(
        default="auto", description="bf16 where the hardware has it, else fp32"
    )
    activation_checkpointing: bool = Field(
        default=False, description="less memory, a third more work"
    )
    detection_weight: float = Field(default=50.0, gt=0, description="ELECTRA's weight of detection")
    model: EncoderConfig = Field(description="the encoder that is kept (ELECTRA's discriminator)")
    generator: EncoderConfig | None = Field(default=None, description="ELECTRA's generator")
    data: Data = Data()
    masking: Masking = Masking()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    stages: tuple[Stage, ...] = Field(default=(), description="in turn; their shares add up to 1")
    evaluation: EvaluationSettings = EvaluationSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    log: LogSettings = LogSettings()

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

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for head in self.heads:
            if head not in PRETRAINING_HEADS:
                raise ValueError(f"unknown head {head!r}; {did_you_mean(head, PRETRAINING_HEADS)}")
        if not self.heads:
            raise ValueError("heads is empty: name what to learn, say ['masked_language']")
        if "replaced_token" in self.heads and self.generator is None:
            raise ValueError("replaced_token needs a [generator] that replaces tokens")
        if "replaced_token" in self.heads and len(self.heads) > 1:
            raise ValueError("replaced_token stands alone: its generator learns masked language")
        self._pairs()
        self._stages()
        return self

    def _pairs(self) -> None:
        rules = arrangement(self.data.arrangement)
        if "sentence_pair" in self.heads and rules.negatives == "none":
            raise ValueError(
                f"data.arrangement {self.data.arrangement!r} gives nothing to decide between "
                "sentence pairs: choose 'albert' (sentence order) or 'bert' (next sentence), or "
                "take sentence_pair out of heads"
            )

    def _stages(self) -> None:
        total = sum(stage.share for stage in self.stages)
        if self.stages and abs(total - 1) > 1e-6:
            raise ValueError(f"stages: shares add up to {total:g}, expected 1")
        for stage in self.stages:
            if stage.depth and not self.model.depth_is_free:
                raise ValueError(
                    f"stages: depth {stage.depth} needs an encoder whose layers are all shared; "
                    "this one would leave layers of its own untrained"
                )
        lengths = [stage.length or self.data.length for stage in self.stages] or [self.data.length]
        longest = self.model.longest_sequence
        if max(lengths) > longest:
            raise ValueError(
                f"data.length {max(lengths)} is more than the model's {longest} positions "
                "(model.max_position_embeddings)"
            )
