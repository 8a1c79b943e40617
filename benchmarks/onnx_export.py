"""Our ONNX files beside those people make: torch.onnx.export, and quantize_dynamic of that.

    python benchmarks/onnx_export.py --sizes base mini --threads 2

The same random weights on all sides. Every file is opened in a process of its own, in turns, and
says its size, how long it took to load, the resident memory that it added, and sentences a second:
one at a time, and sorted in batches of 32. Lengths are those of short sentences (about 25 tokens).
`pip install onnxscript` for torch's current exporter; without it its old one is used.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

SIZES: dict[str, dict[str, int]] = {
    "base": {},
    "mini": {
        "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024,
        "num_hidden_layers": 6,
    },
}  # fmt: skip
NAMES = ["input_ids", "attention_mask", "token_type_ids"]


def sentences(count: int) -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    lengths = draw.normal(25, 9, count).clip(4, 64).astype(int)
    return [draw.integers(5, 30_000, length) for length in lengths]


def feeds(rows: list[np.ndarray]) -> dict[str, np.ndarray]:
    width = max(map(len, rows))
    ids = np.zeros((len(rows), width), np.int64)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)], mask[place, : len(row)] = row, 1
    return dict(zip(NAMES, (ids, mask, np.zeros_like(ids)), strict=True))


def resident() -> float:
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def measure(file: str, threads: int, count: int) -> dict[str, float]:
    """In a process of its own: one file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    before, start = resident(), time.perf_counter()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    found = {"load_s": time.perf_counter() - start, "resident_mb": resident() - before}
    texts = sentences(count)
    ordered = sorted(texts, key=len)
    for name, size in (("one", 1), ("batches", 32)):
        parts = [feeds(ordered[i : i + size]) for i in range(0, count, size)]
        session.run(["logits"], parts[-1])
        start = time.perf_counter()
        for part in parts:
            session.run(["logits"], part)
        found[f"{name}_per_s"] = count / (time.perf_counter() - start)
    return found


def make_files(size: str, folder: Path) -> dict[str, Path]:
    """All sides of one model."""
    import litebert

    model = litebert.Model.create(
        litebert.EncoderConfig.build(SIZES[size], size), ("classification",), seed=1
    )
    model.save(folder / "model")
    litebert.export_model(folder / "model", folder / "ours", "onnx", say=print)
    theirs = folder / "torch.onnx"
    export_theirs(folder / "model", theirs)
    files = {"ours fp32": folder / "ours/onnx/model.onnx", "torch.onnx.export fp32": theirs}
    files["ours int8"] = folder / "ours/onnx/model_quantized.onnx"
    for name, options in (
        ("plain", {}),
        ("per channel", {"per_channel": True, "reduce_range": True}),
    ):
        files[f"quantize_dynamic, {name}"] = quantize(theirs, folder / f"{name}.onnx", options)
    return files


def export_theirs(model: Path, file: Path) -> None:
    import torch
    from transformers import AlbertForSequenceClassification

    theirs = AlbertForSequenceClassification.from_pretrained(model).eval()
    ids = torch.randint(5, 1000, (2, 9))
    new = find_spec("onnxscript") is not None
    axes = {0: "batch", 1: "length"}
    dynamic: dict[str, Any] = (
        {"dynamic_shapes": (axes, axes, axes), "external_data": False}
        if new
        else {"dynamic_axes": dict.fromkeys(NAMES, axes)}
    )
    print(f"torch.onnx.export(dynamo={new})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            theirs, (ids, torch.ones_like(ids), torch.zeros_like(ids)), str(file), dynamo=new,
            input_names=NAMES, output_names=["logits"], **dynamic,
        )  # fmt: skip


def quantize(source: Path, file: Path, options: dict[str, Any]) -> Path:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(source)
    del graph.graph.value_info[:]  # shapes in it that the quantizer refuses
    quantize_dynamic(graph, file, weight_type=QuantType.QInt8, **options)
    operators = [node.op_type for node in onnx.load(file).graph.node]
    print(f"{file.stem}: {operators.count('MatMulInteger')} MatMulInteger")
    return file


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=128)
    parser.add_argument("--file", help="measure this one, and print JSON")
    options = parser.parse_args()
    if options.file:
        print(json.dumps(measure(options.file, options.threads, options.sentences)))
        return
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            compare(make_files(size, Path(folder)), size, options)


def compare(files: dict[str, Path], size: str, options: Any) -> None:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in files}
    for _ in range(options.rounds):
        for name, file in files.items():
            command = [sys.executable, __file__, "--file", str(file)]
            command += ["--threads", str(options.threads), "--sentences", str(options.sentences)]
            found[name].append(json.loads(subprocess.check_output(command)))
    print(f"\n{size}, {options.threads} threads, median of {options.rounds}")
    print(f"{'':32} {'MB':>7} {'load s':>7} {'+RSS MB':>8} {'one/s':>7} {'by 32/s':>8}")
    for name, rounds in found.items():
        load, memory, one, batches = (
            median(row[key] for row in rounds)
            for key in ("load_s", "resident_mb", "one_per_s", "batches_per_s")
        )
        megabytes = files[name].stat().st_size / 1e6
        print(f"{name:32} {megabytes:7.2f} {load:7.2f} {memory:8.0f} {one:7.1f} {batches:8.1f}")


if __name__ == "__main__":
    main()
