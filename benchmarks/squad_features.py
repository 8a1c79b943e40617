"""SQuAD features: how long they take, and whether every gold answer comes back from them.

    python benchmarks/squad_features.py dev-v2.0.json --tokenizer TOKENIZER [--length 128 256 384]

For each window size all questions become features, and every answer is cut again from its passage
by the tokens that the features point at, in each window that holds it. An answer that begins or
ends inside a piece (the "1990" of "1990s") cannot come back to the letter from any window; these
are counted apart. Bar: 30 s for the 11,873 questions of dev-v2.0.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from litebert.tasks.question_answering import QuestionAnswering, QuestionSettings
from litebert.tasks.questions import read_squad
from litebert.text.tokenizer import Tokenizer, load_tokenizer

TIME_BAR = 30.0


def look(examples: list, tokenizer: Tokenizer, length: int) -> None:
    settings = QuestionSettings(name="squad-2.0", kind="qa", metrics=("f1",), max_length=length)
    began = time.perf_counter()
    features = QuestionAnswering(settings).features(examples, tokenizer)
    seconds = time.perf_counter() - began
    starts = features.batch.starts
    found: set[int] = set()
    wrong = inside = 0
    for number, owner in enumerate(features.example_of.tolist()):
        first, last, missing = features.batch.labels[number].tolist()
        if missing:
            continue
        found.add(owner)
        end = starts[number] + features.batch.lengths[number]
        places = features.extras["offsets"][starts[number] : end]
        example, answer = examples[owner], examples[owner].answers[0]
        text = example.passage[places[first, 0] : places[last, 1]]
        if text == answer.text:
            continue
        if answer.text.strip() in text:
            inside += 1
        else:
            wrong += 1
    answerable = sum(bool(example.answers) for example in examples)
    print(
        f"length {length}: {len(examples):,} questions, {len(features.batch):,} windows in "
        f"{seconds:.1f} s (bar {TIME_BAR:.0f} s); answers {answerable:,}, found in a window "
        f"{len(found):,}; windows whose piece reaches beyond the answer: {inside}, wrong ones: "
        f"{wrong}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="SQuAD features")
    parser.add_argument("file", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--length", type=int, nargs="+", default=[128, 256, 384])
    options = parser.parse_args()
    examples, tokenizer = read_squad(options.file), load_tokenizer(options.tokenizer)
    for length in options.length:
        look(examples, tokenizer, length)


if __name__ == "__main__":
    main()
