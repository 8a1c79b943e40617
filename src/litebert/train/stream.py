"""The batches of a run, stage by stage: lengths, batch sizes and depths may change on the way."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from litebert.base.batch import Batch
from litebert.base.errors import SettingsError
from litebert.corpus.loader import Corrupt, Loader, LoaderSettings
from litebert.corpus.store import Store
from litebert.corpus.workers import Workers
from litebert.presets.recipe import Preset, Stage


@dataclass(frozen=True)
class Leg:
    """A stage, worked out: until which share of the budget, with which batches and depth."""

    until: float
    loading: LoaderSettings
    depth: int | None


def legs(preset: Preset) -> list[Leg]:
    """The stages of a preset, or the one that it is."""
    result, until = [], 0.0
    for number, stage in enumerate(preset.stages or (Stage(share=1.0),)):
        until = round(until + stage.share, 9)  # 0.1 + 0.2 is not 0.3 in binary
        loading = LoaderSettings(
            arrangement=preset.data.arrangement,
            length=stage.length or preset.data.length,
            batch=stage.batch or preset.data.batch,
            by=preset.data.by,
            seed=preset.seed + number,  # a stage sees the text in an order of its own
            copies=preset.data.copies,
        )
        result.append(Leg(until, loading, stage.depth))
    return result


class Stream:
    """Batch after batch, each rank its share; a context, as loading may take other processes."""

    def __init__(
        self, store: Store, plan: list[Leg], corrupt: Corrupt, rank: int, ranks: int, workers: int
    ) -> None:
        self.store, self.plan, self.corrupt = store, plan, corrupt
        self.rank, self.ranks, self.workers = rank, ranks, workers
        self.stage = 0
        self.loader = self._loader(0)
        self._held = ExitStack()
        self._batches: Workers | None = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def next(self, progress: float) -> tuple[Batch, int | None]:
        """The next batch when a share of the budget is spent, and the depth to run it at."""
        while progress >= self.plan[self.stage].until and self.stage + 1 < len(self.plan):
            self._move_to(self.stage + 1)
        if self._batches is None:
            self._batches = self._held.enter_context(Workers(self.loader, self.workers))
        try:
            return next(self._batches), self.plan[self.stage].depth
        except StopIteration:
            raise SettingsError(f"{self.store.folders[0]}: gives no sample to train on") from None

    def _move_to(self, stage: int) -> None:
        self._held.close()
        self._batches, self.stage, self.loader = None, stage, self._loader(stage)

    def _loader(self, stage: int) -> Loader:
        loading = self.plan[stage].loading
        return Loader(self.store, loading, self.corrupt, self.rank, self.ranks)

    def state(self) -> dict[str, Any]:
        """The stage and the position in it."""
        return {"stage": self.stage, "loader": self.loader.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        stage = state.get("stage")
        if not isinstance(stage, int) or not 0 <= stage < len(self.plan):
            raise SettingsError(f"checkpoint: stage {stage!r} is none of this run's")
        self._move_to(stage)
        self.loader.restore(state.get("loader") or {})
