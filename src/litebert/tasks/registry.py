"""Kinds of task, by name."""

from __future__ import annotations

from collections.abc import Callable

from litebert.tasks.base import Task, TaskSettings
from litebert.tasks.classification import Classification
from litebert.tasks.multiple_choice import MultipleChoice
from litebert.tasks.question_answering import QuestionAnswering
from litebert.tasks.tagging import Tagging

KINDS: dict[str, Callable[[TaskSettings], Task]] = {
    "classify": Classification,
    "pair": Classification,
    "regress": Classification,
    "tag": Tagging,
    "qa": QuestionAnswering,
    "choice": MultipleChoice,
}


def build_task(settings: TaskSettings) -> Task:
    """The task that settings describe."""
    return KINDS[settings.kind](settings)
