"""The paper's Table 5 at a small budget: no pair objective, next sentence, or sentence order.

    python benchmarks/table5.py --budget 20Mtok                 three runs, then the table
    python benchmarks/table5.py --corpus corpus --preset albert-tiny --out table5

Each row is pretrained for the same budget from the same seed and then measured on held-out text:
masked LM, next sentence and sentence order. A pair question is put in two ways: to the head that
was trained (the row "none" has none), and to a new pooler and head fitted on the frozen encoder
(a probe), which shows what the encoder itself knows. Finished rows are kept and not trained again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

import litebert
import texts
from litebert.base.intervals import wilson
from litebert.cli.live import live_view
from litebert.corpus.store import Store
from litebert.model.inputs import to_inputs
from litebert.objectives.learner import Learner
from litebert.objectives.registry import build_objectives
from litebert.train.distributed import DistributedGroup
from litebert.train.evaluate import evaluate_held_out
from litebert.train.held_out import evaluate_batches, held_out_batches

ROWS = {
    "sentence order": ['objectives=["masked_lm", "sentence_order"]', "data.input_format=albert"],
    "next sentence": ['objectives=["masked_lm", "next_sentence"]', "data.input_format=bert"],
    "none": ['objectives=["masked_lm"]', "data.input_format=plain-pairs"],
}
PAPER = {
    "none": (54.9, 52.4, 53.3),
    "next sentence": (54.5, 90.5, 52.0),
    "sentence order": (54.0, 78.9, 86.5),
}
INPUT_FORMATS = {"next_sentence": "bert", "sentence_order": "albert"}
PROBE_RATE = 1e-3
CPU = torch.device("cpu")


def probe(folder: Path, store: Store, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Accuracy of a new pooler and head for one pair question, on a frozen encoder."""
    start = litebert.load(folder / "model")
    model = litebert.Model.create(start.config, ("sentence_pair",), seed=1)
    model.load_state_dict(
        {key: value for key, value in start.state_dict().items() if key.startswith("encoder.")},
        strict=False,
    )
    model.encoder.requires_grad_(False)
    loading = litebert.LoaderSettings(
        input_format=INPUT_FORMATS[name], max_length=options.length, batch_size=32
    )
    masker = litebert.Masker(litebert.Masking(), store.tokenizer)
    loader = litebert.Loader(store, loading, masker)
    (objective,) = build_objectives([name])
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=PROBE_RATE, fused=True)
    for step in range(options.probe):
        optimizer.param_groups[0]["lr"] = PROBE_RATE * (1 - step / options.probe)
        inputs = to_inputs(next(loader), CPU)
        state = inputs.encode(model)
        loss = objective.term(model, state, inputs).loss / max(objective.count(inputs.batch), 1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    group = DistributedGroup()
    batches = held_out_batches(store, loading, masker, options.sequences, group)
    sums = evaluate_batches(Learner(model, [objective]), batches, group, "auto", 8192)
    ((_, count, values),) = sums.rows()
    found = wilson(values["correct"], count)
    return {"accuracy": found.value, "interval": (found.low, found.high), "count": int(count)}


def train_row(row: str, options: argparse.Namespace, out: Path) -> Path:
    """Pretrain one row, or find it finished."""
    run = out / row.replace(" ", "-")
    print(f"{row}: training for {options.budget}", flush=True)
    overrides = [*ROWS[row], f"data.max_length={options.length}", *options.set]
    with live_view() as view:
        litebert.pretrain(
            options.preset, options.corpus, run, budget=options.budget, overrides=overrides,
            callbacks=[view],
        )  # fmt: skip
    return run


def show(entry: dict[str, Any] | None) -> str:
    """An accuracy with its interval."""
    if entry is None:
        return "-"
    low, high = entry["interval"]
    return f"{entry['accuracy']:.1%} ({low:.1%}-{high:.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Table 5 at a small budget")
    texts.add_options(parser)
    parser.add_argument("--corpus", help="a prepared store, instead of raw text")
    parser.add_argument("--preset", default="albert-tiny")
    parser.add_argument("--budget", default="20Mtok", help="of each row")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--sequences", type=int, default=3000, help="held-out, for each figure")
    parser.add_argument("--probe", type=int, default=500, help="steps of a probe")
    parser.add_argument("--set", action="append", default=[], help="as in litebert pretrain")
    parser.add_argument("--out", type=Path, help="keep the runs and table.json here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = options.out or Path(scratch)
        if options.corpus is None:
            text, tokenizer = texts.resolve(options, Path(scratch))
            options.corpus = str(Path(scratch) / "corpus")
            litebert.prepare([text], tokenizer, options.corpus)
        compare(options, out)


def compare(options: argparse.Namespace, out: Path) -> None:
    """Train and measure the rows; print and keep the table."""
    store, table = litebert.open_store(options.corpus), {}
    for row in ROWS:
        run = train_row(row, options, out)
        report = evaluate_held_out(run, [options.corpus], sequences=options.sequences).as_dict()
        probes = {name: probe(run, store, name, options) for name in INPUT_FORMATS}
        table[row] = {"report": report, "probe": probes}
        (out / "table.json").write_text(json.dumps(table, indent=2))
    print(f"{options.preset}, {options.budget} a row, {options.length} tokens a sequence")
    print("row              masked LM               next sentence           sentence order")
    for row, entry in table.items():
        columns = [entry["report"]["objectives"].get(n) for n in ("masked_lm", *INPUT_FORMATS)]
        print(f"{row:16} " + "  ".join(f"{show(column):22}" for column in columns))
        probed = [entry["probe"][name] for name in INPUT_FORMATS]
        print(f"{'  probe':16} " + " " * 24 + "  ".join(f"{show(one):22}" for one in probed))
        print(f"{'  paper (base)':16} " + "  ".join(f"{value:<22}" for value in PAPER[row]))


if __name__ == "__main__":
    main()
