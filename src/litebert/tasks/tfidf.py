"""The plain rival: TF-IDF of words and word pairs, and a linear model (scikit-learn).

It reads no word order beyond two words and knows no language, trains in seconds, and is what an
encoder must be worth more than. Of a pair it sees what both texts have in common, what only one of
them has, and how near they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import MissingExtraError

Texts = Sequence[tuple[str, str | None]]  # a text, or a pair
Floats = NDArray[np.floating]
SparseRows = Any  # scipy's

TOKENS = r"(?u)\w+|[^\w\s]"
C = 10.0  # the best of 1 to 30 on the demo's sentences, at every number of labels or nearly so
ALPHA = 1.0  # of ridge regression
NEARNESS = 5.0  # weight of the cosine beside the words, which are many


def tfidf_probabilities(train: Texts, labels: Sequence[int], texts: Texts, classes: int) -> Floats:
    """How likely each class is for each text, by a logistic regression; (texts, classes)."""
    found = np.zeros((len(texts), classes))
    learned, asked = _features(train, texts)
    from sklearn.linear_model import LogisticRegression

    if len(set(labels)) == 1:  # there is nothing to learn
        found[:, labels[0]] = 1.0
        return found
    model = LogisticRegression(C=C, max_iter=1000).fit(learned, labels)
    found[:, model.classes_] = model.predict_proba(asked)
    return found


def tfidf_values(train: Texts, values: Sequence[float], texts: Texts) -> Floats:
    """A number for each text, by a ridge regression."""
    learned, asked = _features(train, texts)
    from sklearn.linear_model import Ridge

    return Ridge(ALPHA).fit(learned, values).predict(asked)


def _features(train: Texts, texts: Texts) -> tuple[SparseRows, SparseRows]:
    """Both as sparse rows; words are known from the training texts only."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise MissingExtraError("scikit-learn", "baseline", "the TF-IDF baseline") from None
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=TOKENS)
    words.fit([text for pair in train for text in pair if text is not None])
    return _rows(words, train), _rows(words, texts)


def _rows(words: Any, texts: Texts) -> SparseRows:
    from scipy.sparse import csr_matrix, hstack

    first = words.transform([text for text, _ in texts])
    if texts[0][1] is None:
        return first
    second = words.transform([text or "" for _, text in texts])
    common = first.multiply(second)
    near = csr_matrix(common.sum(axis=1)) * NEARNESS
    return hstack([common, abs(first - second), near], format="csr")
