"""SQuAD's scores as the official scripts have them: exact match and F1 of words, in percent.

Both are the best over a question's gold answers, after normalising: lower case, no ASCII
punctuation, no articles, single spaces. The scripts differ in what is empty after that:

    1.1   all golds count; F1 is 0 where no word is shared, so also between two empty texts
    2.0   empty golds do not count, and a question left without any has the gold ""; F1 with an
          empty text is 1 if both are empty, else 0

Golds are a question's id -> its answers, none for a question that cannot be answered. A threshold
turns a prediction into "no answer" where the no-answer score is above it.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import SettingsError

Version = Literal["1.1", "2.0"]
Golds = Mapping[str, Sequence[str]]

ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
class QuestionScores:
    """The scores of single questions, between 0 and 1, and whether each can be answered."""

    ids: tuple[str, ...]
    exact: NDArray[np.float64]
    f1: NDArray[np.float64]
    answerable: NDArray[np.bool_]


def normalize_answer(text: str) -> str:
    """Text as it is compared: lower case, no punctuation, no articles, single spaces."""
    bare = text.lower().translate(NO_PUNCTUATION)  # first, so that "a-b" is "ab" and not "b"
    return " ".join(ARTICLES.sub(" ", bare).split())


def _f1(gold: list[str], prediction: list[str], version: Version) -> float:
    if version == "2.0" and not (gold and prediction):
        return float(gold == prediction)
    shared = (Counter(gold) & Counter(prediction)).total()
    return 2 * shared / (len(gold) + len(prediction)) if shared else 0.0


def score_questions(
    golds: Golds, predictions: Mapping[str, str], version: Version = "2.0"
) -> QuestionScores:
    """Exact match and F1 of every question, the better the nearer to its best gold."""
    _require_all(golds, predictions, "prediction")
    scores = [_best(golds[key], predictions[key], version, key) for key in golds]
    exact, f1 = np.asarray(scores, np.float64).T
    answerable = np.asarray([bool(answers) for answers in golds.values()])
    return QuestionScores(tuple(golds), exact, f1, answerable)


def _best(
    golds: Sequence[str], prediction: str, version: Version, question: str
) -> tuple[float, float]:
    answers = [normalize_answer(gold).split() for gold in golds]
    if version == "2.0":
        answers = [answer for answer in answers if answer] or [[]]
    if not answers:
        raise SettingsError(
            f"question {question} has no gold answer, which SQuAD 1.1 cannot score; score as 2.0"
        )
    words = normalize_answer(prediction).split()
    return float(words in answers), max(_f1(answer, words, version) for answer in answers)


def with_threshold(
    scores: QuestionScores, no_answer: Mapping[str, float], threshold: float
) -> QuestionScores:
    """The scores if questions with a no-answer score above the threshold are not answered."""
    silent = _values(scores, no_answer) > threshold
    return replace(
        scores,
        exact=np.where(silent, ~scores.answerable, scores.exact),
        f1=np.where(silent, ~scores.answerable, scores.f1),
    )


def silence(
    predictions: Mapping[str, str], no_answer: Mapping[str, float], threshold: float
) -> dict[str, str]:
    """The predictions, "" where the no-answer score is above the threshold."""
    _require_all(predictions, no_answer, "no-answer score")
    return {key: "" if no_answer[key] > threshold else text for key, text in predictions.items()}


def best_threshold(
    scores: NDArray[np.float64], answerable: NDArray[np.bool_], no_answer: NDArray[np.float64]
) -> tuple[float, float]:
    """The best mean that a threshold can give to `scores`, and the lowest threshold that gives it.

    As the official search: answer nothing at first, then question by question in the order of the
    no-answer scores. Three of its slips are not repeated, so that the threshold always gives what
    it promises: questions with equal scores are answered together; where answering nothing is best,
    the threshold is 0 only if all scores are above it, else just below them; and an answer that
    normalizes to nothing ("the") to a question that has none counts as the official score counts
    it, as right, where the search takes a point off for it.
    """
    order = np.argsort(no_answer, kind="stable")
    sorted_scores = no_answer[order]
    gained = (scores - ~answerable)[order]
    last = np.append(sorted_scores[1:] != sorted_scores[:-1], True)
    totals = np.append(0.0, np.cumsum(gained)[last]) + (~answerable).sum()
    lowest = sorted_scores[0]
    nothing = 0.0 if lowest > 0 else np.nextafter(lowest, -np.inf)
    thresholds = np.append(nothing, sorted_scores[last])
    best = int(np.argmax(totals))
    return float(totals[best] / len(scores)), float(thresholds[best])


def squad_v1(golds: Golds, predictions: Mapping[str, str]) -> dict[str, float]:
    """SQuAD 1.1: exact, f1 (percent) and total."""
    return _summary(score_questions(golds, predictions, "1.1"))


def squad_v2(
    golds: Golds,
    predictions: Mapping[str, str],
    no_answer: Mapping[str, float] | None = None,
    threshold: float | None = None,
) -> dict[str, float]:
    """SQuAD 2.0 under the official names: exact, f1, total, HasAns_exact, NoAns_f1, …

    With no-answer scores also the best of all thresholds (best_exact, best_exact_thresh, best_f1,
    best_f1_thresh), found on these very questions. Without a threshold predictions count as they
    are.
    """
    raw = score_questions(golds, predictions)
    scores = raw
    if threshold is not None:
        if no_answer is None:
            raise SettingsError(f"threshold = {threshold} needs the questions' no-answer scores")
        scores = with_threshold(raw, no_answer, threshold)
    report = _summary(scores)
    report |= _summary(scores, "HasAns_", scores.answerable)
    report |= _summary(scores, "NoAns_", ~scores.answerable)
    return report if no_answer is None else report | _best_thresholds(raw, no_answer)


def _best_thresholds(raw: QuestionScores, no_answer: Mapping[str, float]) -> dict[str, float]:
    report: dict[str, float] = {}
    values = _values(raw, no_answer)
    for name, scores in (("exact", raw.exact), ("f1", raw.f1)):
        best, threshold = best_threshold(scores, raw.answerable, values)
        report |= {f"best_{name}": 100 * best, f"best_{name}_thresh": threshold}
    return report


def _summary(
    scores: QuestionScores, prefix: str = "", kept: NDArray[np.bool_] | None = None
) -> dict[str, float]:
    """Means in percent over the kept questions; nothing where none is kept, as officially."""
    exact, f1 = (side if kept is None else side[kept] for side in (scores.exact, scores.f1))
    if not len(exact):
        return {}
    means = {"exact": 100 * float(exact.mean()), "f1": 100 * float(f1.mean()), "total": len(exact)}
    return {prefix + name: value for name, value in means.items()}


def _values(scores: QuestionScores, no_answer: Mapping[str, float]) -> NDArray[np.float64]:
    """The no-answer scores in the order of the questions."""
    _require_all(scores.ids, no_answer, "no-answer score")
    values = np.asarray([no_answer[key] for key in scores.ids], np.float64)
    if not np.isfinite(values).all():
        raise SettingsError("a no-answer score is infinite or not a number; has training diverged?")
    return values


def _require_all(wanted: Iterable[str], given: Mapping[str, object], what: str) -> None:
    keys = list(wanted)
    missing = [key for key in keys if key not in given]
    if missing or not keys:
        example = f", the first of them {missing[0]}" if missing else ""
        raise SettingsError(
            f"{len(missing)} of {len(keys)} questions have no {what}{example}; there must be "
            "questions, and each needs one"
        )
