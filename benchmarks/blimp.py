"""Pseudo-log-likelihoods of sentences: ours against one mask at a time through transformers.

    python benchmarks/blimp.py --model RUN --data blimp/data --sentences 60

Both score the same sentences with the same weights, in both ways (plain, and word left to right).
The literal version makes one forward pass for every masked token, as published scorers do.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from transformers import AutoModelForMaskedLM

from litebert.inference.minimal_pairs import read_minimal_pairs
from litebert.inference.pseudo_likelihood import pseudo_likelihoods
from litebert.model.folder import find_model_folder
from litebert.model.model import Model
from litebert.text.tokenizer import Tokenizer, load_tokenizer

BAR = 10.0


@torch.no_grad()
def literal(model: torch.nn.Module, tokenizer: Tokenizer, text: str) -> tuple[float, float]:
    special, ids = tokenizer.special, tokenizer.encode(text)
    starts = [place == 0 or bool(tokenizer.word_starts[id]) for place, id in enumerate(ids)]
    sums = [0.0, 0.0]
    for place, id in enumerate(ids):
        end = place + 1
        while end < len(ids) and not starts[end]:
            end += 1
        for way, stop in enumerate((place + 1, end)):
            masked = [special.mask if place <= i < stop else one for i, one in enumerate(ids)]
            given = torch.tensor([[special.cls, *masked, special.sep]])
            logits = model(input_ids=given).logits[0, place + 1]
            sums[way] += float(logits.log_softmax(-1)[id])
    return sums[0], sums[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Scoring sentences by masking")
    parser.add_argument("--model", type=Path, required=True, help="a run or a model folder")
    parser.add_argument("--data", type=Path, required=True, help="a folder of minimal pairs")
    parser.add_argument("--sentences", type=int, default=60, help="for the literal version")
    parser.add_argument("--many", type=int, default=2000, help="for ours, timed")
    options = parser.parse_args()
    folder = find_model_folder(options.model)
    tokenizer, ours = load_tokenizer(folder), Model.load(folder)
    theirs = AutoModelForMaskedLM.from_pretrained(folder).eval()
    pairs = read_minimal_pairs(options.data)
    step = max(2 * len(pairs) // options.many, 1)
    texts = [text for pair in pairs for text in (pair.good, pair.bad)][::step]
    few = texts[:: max(len(texts) // options.sentences, 1)]
    pseudo_likelihoods(ours, tokenizer, few)  # once before, for both
    literal(theirs, tokenizer, few[0])
    began = time.perf_counter()
    expected = [literal(theirs, tokenizer, text) for text in few]
    slow = (time.perf_counter() - began) / len(few)
    began = time.perf_counter()
    pseudo_likelihoods(ours, tokenizer, texts)
    fast = (time.perf_counter() - began) / len(texts)
    found = pseudo_likelihoods(ours, tokenizer, few)
    apart = max(
        abs(a - b)
        for one, two in zip(found, expected, strict=True)
        for a, b in zip((one.plain, one.word), two, strict=True)
    )
    print(f"one mask at a time: {1 / slow:,.1f} sentences/s ({len(few)} sentences)")
    print(f"litebert:           {1 / fast:,.1f} sentences/s ({len(texts)} sentences)")
    print(f"ratio {slow / fast:.1f} (bar {BAR:g}); largest difference {apart:.1e} (bar 1e-4)")


if __name__ == "__main__":
    main()
