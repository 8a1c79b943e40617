"""The batches of a run, stage by stage: lengths, batch sizes, depths and masks may change."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.configs.schema import Preset, StageSettings
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.prefetch import Prefetcher
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker


@dataclass(frozen=True)
class Stage:
    """Until which fraction of the budget, with which batches, at which depth."""

    until: float
    loading: LoaderSettings
    depth: int | None
    mask_fraction: float | None = None  # None for the masker's own


def resolve_stages(preset: Preset) -> list[Stage]:
    """The stages of a preset, or the one that it is."""
    result, until, data = [], 0.0, preset.data
    for number, stage in enumerate(preset.stages or (StageSettings(fraction=1.0),)):
        until = round(until + stage.fraction, 9)  # 0.1 + 0.2 is not 0.3 in binary
        loading = LoaderSettings(
            input_format=data.input_format,
            max_length=stage.max_length or data.max_length,
            batch_size=stage.batch_size or data.batch_size,
            batch_by=data.batch_by,
            seed=preset.seed + number,  # a stage sees the text in an order of its own
            dupe_factor=data.dupe_factor,
        )
        result.append(Stage(until, loading, stage.depth, stage.mask_fraction))
    return result


class StagedBatches:
    """Batch after batch, each rank its part; a context, as prefetching takes other processes."""

    def __init__(
        self, store: Store, stages: list[Stage], masker: Masker | None, rank: int,
        world_size: int,
        num_workers: int,
    ) -> None:  # fmt: skip
        self.store, self.stages, self.masker = store, stages, masker
        self.rank, self.world_size, self.num_workers = rank, world_size, num_workers
        self.number = 0
        self.loader = self._loader(0)
        self._held = ExitStack()
        self._batches: Prefetcher | None = None

    def __enter__(self) -> StagedBatches:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @property
    def stage(self) -> Stage:
        return self.stages[self.number]

    def next(self, progress: float) -> tuple[Batch, int | None]:
        """The next batch when a fraction of the budget is spent, and the depth to run it at."""
        while progress >= self.stage.until and self.number + 1 < len(self.stages):
            self._move_to(self.number + 1)
        if self._batches is None:
            self._batches = self._held.enter_context(Prefetcher(self.loader, self.num_workers))
        try:
            return next(self._batches), self.stage.depth
        except StopIteration:
            raise SettingsError(f"{self.store.folders[0]}: gives no sample to train on") from None

    def _move_to(self, number: int) -> None:
        self._held.close()
        self._batches, self.number, self.loader = None, number, self._loader(number)

    def _loader(self, number: int) -> Loader:
        stage = self.stages[number]
        masker = self.masker and self.masker.with_fraction(stage.mask_fraction)
        return Loader(self.store, stage.loading, masker, self.rank, self.world_size)

    def state(self) -> dict[str, Any]:
        """The stage and the position in it."""
        return {"stage": self.number, "loader": self.loader.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        number = state.get("stage")
        if not isinstance(number, int) or not 0 <= number < len(self.stages):
            raise SettingsError(f"checkpoint: stage {number!r} is none of this run's")
        self._move_to(number)
        self.loader.restore(state.get("loader") or {})
