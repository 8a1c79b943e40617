"""How to fine-tune: learning rates, batches, epochs. The paper's numbers (Table 14), and our own.

    recipes/paper.toml   a row of Table 14 for each task

Without a name the recipe follows from the data and the encoder (recipe_rule.py). A row of a file
holds for one task; `[any]` holds for all that have none of their own. What stands in a row's
`without_dropout` holds for encoders that were pretrained without dropout (ALBERT v2), on top.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from litebert.base.errors import SettingsError, did_you_mean
from litebert.base.runtime import Precision
from litebert.base.settings import Settings, Tree, merge, parse_overrides, read_toml
from litebert.configs.schema import OptimizerSettings, ScheduleSettings
from litebert.tasks.texts import Pooling

FOLDER = Path(__file__).parent / "recipes"
ANY, WITHOUT_DROPOUT = "any", "without_dropout"
Fraction = Annotated[float, Field(ge=0, lt=1)]


class Recipe(Settings):
    """One way to fine-tune. A task takes the settings that it has too: max_length, pooling, …"""

    max_length: int = Field(default=128, ge=8, description="tokens of a sequence, at most")
    batch_size: int = Field(default=32, ge=1, description="sequences a step; questions, of choices")
    epochs: float | None = Field(default=3, gt=0, description="passes over the examples")
    steps: int | None = Field(default=None, ge=1, description="instead of epochs")
    learning_rate: float = Field(default=3e-5, gt=0, description="the highest one")
    warmup: Fraction = Field(default=0.1, description="fraction of the steps with a rising rate")
    weight_decay: float = Field(default=0.01, ge=0)
    bias_correction: bool = Field(default=True, description="AdamW's; Google's code has none")
    gradient_clipping: float = Field(
        default=1.0, ge=0, description="largest norm of all gradients; 0: any"
    )
    layerwise_lr_decay: float = Field(
        default=1.0, gt=0, le=1, description="learning rate of each lower layer, as a factor"
    )
    dropout: Fraction | None = Field(
        default=None, description="of the encoder; by default as the model says (0 for v2)"
    )
    attention_dropout: Fraction | None = Field(
        default=None, description="of attention's probabilities; by default as `dropout`"
    )
    classifier_dropout: Fraction = Field(default=0.1, description="before the new head")
    pooling: Pooling = Field(
        default="first",
        description="a text's vector: [CLS] (first), or the mean of its tokens (a head of our own)",
    )
    bi_encoder: bool = Field(
        default=False,
        description="each text of a pair is read by itself and their means are compared (a head of "
        "our own); of lone texts the mean is taken",
    )
    conditional_head: bool = Field(
        default=True,
        description="SQuAD 2.0: the paper's head, which stays ours; off: one transformers has",
    )
    exits: bool = Field(default=False, description="a head at every depth, for early exit (PABEE)")
    freeze: bool = Field(
        default=False,
        description="a linear probe: the encoder stays as it is, and the head's last layer is "
        "fitted to what it says of the examples (no steps, no learning rate)",
    )
    contrastive: bool = Field(
        default=False,
        description="for few labels: first draw texts of one label together and those of two "
        "apart (the steps), then fit the head as `freeze` does; SetFit's way",
    )
    temperature: float = Field(
        default=2.0, gt=0, description="with a teacher: of its probabilities and the student's"
    )
    soft_label_weight: float = Field(
        default=1.0, gt=0, description="with a teacher: of its loss beside that of the labels"
    )
    probe_first: bool = Field(
        default=False,
        description="the head begins as a linear probe of the encoder, not at random, and then all "
        "learns (LP-FT, Kumar 2022)",
    )
    class_weights: Literal["none", "balanced"] = Field(
        default="none",
        description="of labels in the loss; balanced: rare ones count as frequent ones",
    )
    evaluations: int = Field(default=5, ge=1, description="on the dev set, evenly spaced")
    keep: Literal["best", "last"] = Field(
        default="best", description="the model of which evaluation; of tied ones the later"
    )
    patience: int | None = Field(
        default=None, ge=1, description="stop after so many evaluations without a better one"
    )
    micro_batch_tokens: int = Field(default=8192, ge=64, description="tokens in memory at a time")
    precision: Precision = "auto"

    @model_validator(mode="after")
    def _one_duration(self) -> Self:
        if self.epochs is None and self.steps is None:
            raise ValueError("say how long: epochs or steps")
        if self.freeze and self.contrastive:
            raise ValueError("freeze and contrastive: a frozen encoder learns no pairs; choose one")
        if self.exits and self.fits_head:
            raise ValueError(
                "exits: heads at every depth learn with the encoder; leave freeze and "
                "contrastive out"
            )
        return self

    def steps_of(self, per_epoch: int) -> int:
        """How many steps it takes where an epoch has so many."""
        return self.steps or max(round((self.epochs or 1) * per_epoch), 1)

    @property
    def fits_head(self) -> bool:
        """Whether the head is fitted on the frozen encoder, rather than trained with it."""
        return self.freeze or self.contrastive

    @property
    def optimizer(self) -> OptimizerSettings:
        """AdamW, as fine-tuning has always used."""
        return OptimizerSettings(
            name="adamw", learning_rate=self.learning_rate, weight_decay=self.weight_decay,
            gradient_clipping=self.gradient_clipping, bias_correction=self.bias_correction,
        )  # fmt: skip

    @property
    def schedule(self) -> ScheduleSettings:
        """Warmup and linear decay."""
        return ScheduleSettings(warmup=self.warmup)


def has_row(name: str, task: str) -> bool:
    """Whether a shipped recipe has a row for a task of its own."""
    return task in read_toml(FOLDER / f"{name}.toml")


def load_recipe(
    name: str, task: str, overrides: Iterable[str] = (), *, without_dropout: bool = False
) -> Recipe:
    """The row of a task in a shipped recipe or a TOML file, with `key=value` changes on top."""
    shipped = {path.stem: path for path in FOLDER.glob("*.toml")}
    path = shipped.get(name, Path(name))
    if not os.path.isfile(path):
        raise SettingsError(f"no recipe {name!r}; {did_you_mean(name, shipped)}, or a TOML file")
    rows = read_toml(path)
    row: Tree = merge(_table(rows, ANY, name), _table(rows, task, name))
    extra = _table(row, WITHOUT_DROPOUT, name)
    row.pop(WITHOUT_DROPOUT, None)
    row = merge(row, extra) if without_dropout else row
    return build_recipe(row, overrides, f"recipe {name}, {task}")


def build_recipe(row: Tree, overrides: Iterable[str], where: str) -> Recipe:
    """Settings with `key=value` changes on top: what the user says goes before all else."""
    changes = parse_overrides(overrides)
    if "epochs" in changes and "steps" not in changes:
        row = {name: value for name, value in row.items() if name != "steps"}
    return Recipe.build(merge(row, changes), where)


def _table(rows: Tree, key: str, recipe: str) -> Tree:
    found = rows.get(key, {})
    if not isinstance(found, dict):
        raise SettingsError(f"recipe {recipe}: {key} = {found!r}: expected a table, [{key}]")
    return found
