"""The plain rival: TF-IDF of words and word pairs, and a logistic regression (scikit-learn)."""

from __future__ import annotations

from collections.abc import Sequence

from litebert.base.errors import MissingExtraError

C = 10.0  # the best of 1 to 30 on the demo's sentences, at every number of labels or nearly so


def baseline_accuracies(
    texts: Sequence[str],
    labels: Sequence[str],
    tests: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> list[float]:
    """Train on labelled texts; the accuracy on each of some test sets (texts and labels)."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
    except ImportError:
        raise MissingExtraError("scikit-learn", "demo", "the TF-IDF baseline") from None
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=C, max_iter=1000)
    )
    model.fit(texts, labels)
    return [float(model.score(list(some), list(truth))) for some, truth in tests]
