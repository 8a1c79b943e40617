"""What is said of runs that could not learn, or did not; the trivial answer of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from litebert.base.batches import Batch
from litebert.finetuning.doubts import dev_too_small, too_few_steps, why_doubtful, why_nothing
from litebert.tasks.features import Features
from litebert.tasks.question_answering import nearest_sentence
from litebert.tasks.registry import build_task
from tests.tasks.small import TASKS


@pytest.mark.parametrize("name", TASKS)
def test_the_trivial_answer_is_scored_and_is_no_success(name: str) -> None:
    settings, examples, _ = TASKS[name]
    task = build_task(settings)
    predictions = task.trivial(examples, examples)
    assert [one.id for one in predictions] == [one.id for one in examples]
    trivial = task.score(examples, predictions)
    assert all(np.isfinite(value) for value in trivial.values())
    assert task.trivial_answer in (why_nothing(task, trivial, trivial, 200) or "")
    assert why_nothing(task, trivial, trivial, 199) is None  # too few to tell
    perfect = dict.fromkeys(trivial, 1.01)
    assert why_nothing(task, perfect, trivial, 200) is None
    metric = settings.metrics[0]
    assert why_doubtful(task, perfect, {metric: [trivial[metric] + 0.01, 1]}, trivial) is None
    doubt = why_doubtful(task, perfect, {metric: [trivial[metric] - 0.01, 1]}, trivial)
    assert "cannot be told" in (doubt or "")


def test_the_majority_is_the_trivial_label() -> None:
    settings, examples, _ = TASKS["classify"]
    task = build_task(settings)
    mostly = [one for one in examples if one.label == "yes"] + examples[:1]
    assert {one.label for one in task.trivial(mostly, examples)} == {"yes"}
    assert task.score(examples, task.trivial(mostly, examples))["accuracy"] == 0.5


def test_rare_labels_found_at_the_price_of_accuracy_are_something_learned() -> None:
    settings = TASKS["classify"][0].model_copy(update={"metrics": ("accuracy", "macro_f1")})
    task = build_task(settings)
    trivial = {"accuracy": 0.97, "macro_f1": 0.49}
    assert why_nothing(task, {"accuracy": 0.95, "macro_f1": 0.7}, trivial, 1000) is None
    assert why_nothing(task, {"accuracy": 0.95, "macro_f1": 0.4}, trivial, 1000) is not None


def test_the_sentence_that_shares_most_words_with_the_question() -> None:
    passage = "The tower was built in 1889. It stands in Paris. Many people visit it."
    assert nearest_sentence("Where does it stand, in Paris?", passage) == (
        29,
        "It stands in Paris.",
    )
    assert nearest_sentence("Why?", "") == (0, "")


def test_windows_without_an_answer_are_no_success() -> None:
    """Chance knows how often there is none, and is uniform over the text where there is one."""
    lengths = np.array([6, 6])
    batch = Batch(
        ids=np.zeros(12, np.int32), token_types=np.zeros(12, np.int8),
        is_text=np.tile([False, False, True, True, True, True], 2),
        segment_starts=np.zeros(12, bool), lengths=lengths,
        labels=np.array([[0, 0, 1], [3, 4, 0]]), keys=np.array([0, 1], np.uint64),
    )  # fmt: skip
    task = build_task(TASKS["qa"][0])
    assert task.chance_loss(Features(batch)) == pytest.approx(np.log(2) + np.log(4) / 2)


def test_said_before_training() -> None:
    assert "18 steps are few" in (too_few_steps(18) or "")
    assert too_few_steps(300) is None
    assert "±20 points" in (dev_too_small(20, "last") or "")
    assert "keep=last" in (dev_too_small(20, "best") or "")
    assert dev_too_small(200, "best") is None
