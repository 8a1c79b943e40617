"""Kinds of task, by name: a new kind is a row here and a module of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litebert.base.errors import SettingsError, did_you_mean
from litebert.tasks.classification import Classification, PairClassification
from litebert.tasks.multiple_choice import MultipleChoice
from litebert.tasks.question_answering import QuestionAnswering
from litebert.tasks.regression import Regression
from litebert.tasks.tagging import Tagging
from litebert.tasks.task import Task, TaskSettings

KINDS: dict[str, type[Task]] = {
    "classify": Classification,
    "pair": PairClassification,
    "regress": Regression,
    "tag": Tagging,
    "qa": QuestionAnswering,
    "choice": MultipleChoice,
}


def find_kind(name: str) -> type[Task]:
    """The class of a kind."""
    if name not in KINDS:
        raise SettingsError(f"no kind of task {name!r}; {did_you_mean(name, KINDS)}")
    return KINDS[name]


def build_task(settings: TaskSettings) -> Task:
    """The task that settings describe."""
    return find_kind(settings.kind)(settings)


def load_task(content: Mapping[str, Any], where: str) -> Task:
    """The task that a model folder remembers; `where` names it in errors."""
    kind = find_kind(str(content.get("kind")))
    return kind(kind.settings_class.build(content, where))
