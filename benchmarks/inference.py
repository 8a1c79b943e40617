"""One text at a time and all at once: the engine, transformers' pipeline and onnxruntime, in turns.

    python benchmarks/inference.py --sizes base mini --threads 2

Random weights, the same on all sides; real sentences (SST-2's dev set where LITEBERT_DATA has it,
else film reviews), tokenizing included. Every side is a process of its own that stays open, and
they take turns, so that a busy machine is busy for all. Peers: the pipeline as it comes and sorted
in batches of 32; onnxruntime with the graph of torch.onnx.export (dev: `pip install onnxscript` for
torch's current exporter), in fp32 and quantized in two ways with the shared weights folded, which
plain use leaves in fp32; and our own exported graph where this version exports one. Printed beside:
seconds to load, and what a process holds more in memory than without the model. On a crowded
machine `--cpu-seconds --threads 1` counts sentences a second of the processor, not of the clock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

DATA = Path(os.environ.get("LITEBERT_DATA", Path(__file__).parents[2] / "shared" / "data"))
NAMES = ["input_ids", "attention_mask", "token_type_ids"]
TOGETHER = 32

Answer = Callable[[Sequence[str]], Any]


class Side(NamedTuple):
    """What answers one text after the other, and all of them at once."""

    one: Callable[[str], Any]
    all: Answer


# ---------------------------------------------------------------------------- models and texts


def sentences(count: int) -> list[str]:
    """Short real sentences."""
    file = DATA / "glue" / "SST-2" / "dev.tsv"
    if file.is_file():
        rows = file.read_text(encoding="utf-8").splitlines()[1:]
        return [row.split("\t")[0] for row in rows][:count]
    from litebert.demos.reviews import read_sentences

    return [example.first for example in read_sentences().train][:count]


def make_model(size: str, folder: Path) -> Path:
    """A classifier of a preset's size with random weights and a tokenizer, once."""
    import litebert
    from litebert.configs.load import load_preset

    found = folder / size / "model"
    if found.is_dir():
        return found
    (folder / size).mkdir(parents=True, exist_ok=True)
    vocabulary = DATA / "tokenizers" / "albert-en" / "spiece.model"
    if vocabulary.is_file():
        tokenizer = litebert.load_tokenizer(vocabulary)
    else:
        (folder / size / "text.txt").write_text("\n\n".join(sentences(8000)), encoding="utf-8")
        source = [str(folder / size / "text.txt")]
        litebert.train_tokenizer(source, folder / size / "tokenizer", vocab_size=8000)
        tokenizer = litebert.load_tokenizer(folder / size / "tokenizer")
    config = load_preset(f"albert-{size}").model
    config = config.model_copy(update={"vocab_size": tokenizer.vocab_size})
    labels = ("negative", "positive")
    litebert.Model.create(config, ("classification",), labels, seed=1).save(
        found, tokenizer=tokenizer
    )
    return found


def make_graphs(model: Path, folder: Path) -> dict[str, Path]:
    """onnxruntime's side: what people export, and what we export where we do."""
    import litebert

    theirs = folder / "torch.onnx"
    if not theirs.is_file():
        _export(model, theirs)
    graphs = {"onnxruntime fp32": theirs}
    for name, weight, reduce_range in (("u8s8", "QInt8", True), ("u8u8", "QUInt8", False)):
        file = folder / f"{name}.onnx"
        graphs[f"onnxruntime int8 {name}"] = _quantize(theirs, file, weight, reduce_range)
    ours = folder / "ours"
    try:
        if not ours.is_dir():
            litebert.export_model(model, ours, "onnx")
    except litebert.LitebertError:
        return graphs  # a version that does not export
    graphs["our graph fp32"] = ours / "onnx" / "model.onnx"
    graphs["our graph int8"] = ours / "onnx" / "model_quantized.onnx"
    return graphs


def _export(model: Path, file: Path) -> None:
    import torch
    from transformers import AlbertForSequenceClassification

    theirs = AlbertForSequenceClassification.from_pretrained(model).eval()
    ids, axes = torch.randint(5, 1000, (2, 9)), {0: "batch", 1: "length"}
    new = find_spec("onnxscript") is not None
    dynamic: dict[str, Any] = (
        {"dynamic_shapes": (axes, axes, axes), "external_data": False}
        if new
        else {"dynamic_axes": dict.fromkeys(NAMES, axes)}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            theirs, (ids, torch.ones_like(ids), torch.zeros_like(ids)), str(file), dynamo=new,
            input_names=NAMES, output_names=["logits"], **dynamic,
        )  # fmt: skip


def _quantize(source: Path, file: Path, weight: str, reduce_range: bool) -> Path:
    """By channel, dynamically; a shared weight's Transpose is folded, or it would stay in fp32."""
    import onnx
    from onnx import numpy_helper
    from onnxruntime.quantization import QuantType, quantize_dynamic

    if file.is_file():
        return file
    loaded = onnx.load(source)
    graph = loaded.graph
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in list(graph.node):
        if node.op_type not in ("Transpose", "Identity") or node.input[0] not in weights:
            continue
        found = weights[node.input[0]]
        found = np.ascontiguousarray(found.T) if node.op_type == "Transpose" else found
        weights[node.output[0]] = found
        graph.initializer.append(numpy_helper.from_array(found, node.output[0]))
        graph.node.remove(node)
    del graph.value_info[:]
    quantize_dynamic(
        loaded, file, per_channel=True, reduce_range=reduce_range,
        weight_type=getattr(QuantType, weight),
    )  # fmt: skip
    counted = [node.op_type for node in onnx.load(file).graph.node].count("MatMulInteger")
    print(f"{file.name}: {counted} integer products", file=sys.stderr)
    return file


# -------------------------------------------------------------------------------------- the sides


def open_engine(folder: Path, precision: str, threads: int) -> Side:
    import litebert

    engine = litebert.Engine(folder, precision=precision, threads=threads)
    return Side(engine.predict, lambda texts: engine.predict(list(texts)))


def open_pipeline(folder: Path, threads: int) -> Side:
    import torch
    import transformers

    torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()
    pipe: Any = transformers.pipeline(
        "text-classification", model=str(folder), device="cpu", dtype=torch.float32
    )
    return Side(pipe, lambda texts: pipe(sorted(texts, key=len), batch_size=TOGETHER))


def open_graph(folder: Path, file: Path, threads: int) -> Side:
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    wanted = {given.name for given in session.get_inputs()}

    def run(texts: Sequence[str]) -> Any:
        found = tokenizer.encode_batch(list(texts))
        arrays = [[one.ids, one.attention_mask, one.type_ids] for one in found]
        feed = dict(zip(NAMES, np.array(arrays, np.int64).transpose(1, 0, 2), strict=True))
        return session.run(["logits"], {name: feed[name] for name in NAMES if name in wanted})

    def sorted_batches(texts: Sequence[str]) -> None:
        ordered = sorted(texts, key=len)
        for start in range(0, len(ordered), TOGETHER):
            run(ordered[start : start + TOGETHER])

    return Side(lambda text: run([text]), sorted_batches)


def open_side(name: str, folder: Path, graph: str | None, threads: int) -> Side:
    if graph is not None:
        return open_graph(folder, Path(graph), threads)
    if name == "transformers pipeline":
        return open_pipeline(folder, threads)
    return open_engine(folder, name.removeprefix("engine "), threads)


def resident() -> float:
    """Megabytes that this process holds."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def work(options: Any) -> None:
    """One side in its process: opens the model, then does what each line asks for."""
    import torch  # the same process without the model has its libraries too

    if options.side.startswith("engine"):
        import litebert

        assert litebert.Engine
        torch.ops.quantized.linear_dynamic  # noqa: B018
    texts = sentences(options.sentences)
    before, began = resident(), time.perf_counter()
    side = open_side(options.side, Path(options.folder), options.graph, options.threads)
    loaded = time.perf_counter() - began
    for text in texts[:20]:
        side.one(text)
    print(json.dumps({"load": loaded, "memory": resident() - before}), flush=True)
    clock = time.process_time if options.cpu_seconds else time.perf_counter
    for line in sys.stdin:
        began = clock()
        if line.strip() == "one":
            for text in texts[: options.one]:
                side.one(text)
        else:
            side.all(texts)
        count = min(options.one, len(texts)) if line.strip() == "one" else len(texts)
        print(json.dumps(count / (clock() - began)), flush=True)


# ------------------------------------------------------------------------------------- comparing


def compare(size: str, folder: Path, options: Any) -> None:
    model = make_model(size, folder)
    sides: dict[str, Path | None] = {"transformers pipeline": None}
    sides |= {f"engine {precision}": None for precision in options.precision.split(",")}
    if find_spec("onnxruntime") and not options.no_onnx:
        sides |= make_graphs(model, folder / size)
    sides = {name: graph for name, graph in sides.items() if name not in options.skip}
    workers = {name: _start(name, model, graph, options) for name, graph in sides.items()}
    opened = {name: json.loads(_read(worker)) for name, worker in workers.items()}
    speeds: dict[str, dict[str, list[float]]] = {
        name: {"one": [], "all": []} for name in workers
    }  # fmt: skip
    began, rounds = time.monotonic(), 0
    while rounds < options.rounds and time.monotonic() - began < options.seconds:
        rounds += 1
        for what in ("one", "all"):
            for name, worker in workers.items():
                print(what, file=worker.stdin, flush=True)
                speeds[name][what].append(json.loads(_read(worker)))
    for worker in workers.values():
        assert worker.stdin is not None
        worker.stdin.close()
        worker.wait()
    report(size, speeds, opened, options)


def _start(name: str, model: Path, graph: Path | None, options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--side", name, "--folder", str(model)]
    command += ["--threads", str(options.threads), "--sentences", str(options.sentences)]
    command += ["--one", str(options.one), *(["--graph", str(graph)] if graph else [])]
    command += ["--cpu-seconds"] if options.cpu_seconds else []
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def _read(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    return worker.stdout.readline()


def report(size: str, speeds: dict[str, Any], opened: dict[str, Any], options: Any) -> None:
    """The table, and the ratios that are asked for."""
    rounds = len(next(iter(speeds.values()))["one"])
    middle = {n: {w: median(found) for w, found in s.items()} for n, s in speeds.items()}
    unit = "sentences a CPU second" if options.cpu_seconds else "sentences/s"
    print(f"\nalbert-{size}, {options.threads} thread(s), {unit}, median of {rounds}")
    print(f"{'':28} {'one by one':>10} {'all at once':>11} {'load s':>7} {'memory MB':>9}")
    for name, found in middle.items():
        told = opened[name]
        print(
            f"{name:28} {found['one']:10.1f} {found['all']:11.1f} {told['load']:7.2f} "
            f"{told['memory']:9.0f}"
        )
    pipe = middle["transformers pipeline"]
    print(f"ratios at {size}:")
    for name, found in middle.items():
        if not name.startswith("engine"):
            continue
        kind = "int8" if name.endswith("int8") else "fp32"
        peers = {n: one for n, one in middle.items() if kind in n and not n.startswith("engine")}
        line = f"  {name}: one by one {found['one'] / pipe['one']:.2f} x the pipeline, all at once "
        line += f"{found['all'] / pipe['one']:.2f} x the pipeline as it comes"
        if peers:
            one, every = (max(peer[what] for peer in peers.values()) for what in ("one", "all"))
            best = max(one, every)
            line += f"; of the best onnxruntime {kind}: one by one {found['one'] / one:.2f}"
            line += f", all at once {found['all'] / best:.2f}"
        print(line)


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", nargs="+", default=["base", "mini"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3600, help="then no round is begun")
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--one", type=int, default=60, help="sentences of a round, one at a time")
    parser.add_argument("--precision", default="fp32,int8")
    parser.add_argument("--no-onnx", action="store_true")
    parser.add_argument("--cpu-seconds", action="store_true", help="count these, not the clock's")
    parser.add_argument("--skip", nargs="+", default=[], help="sides to leave out, by their names")
    parser.add_argument("--out", help="keep the models here")
    for name in ("--side", "--folder", "--graph"):
        parser.add_argument(name, help="of a process that this starts")
    options = parser.parse_args()
    if options.side:
        work(options)
        return
    with tempfile.TemporaryDirectory() as scratch:
        for size in options.sizes:
            compare(size, Path(options.out or scratch), options)


if __name__ == "__main__":
    main()
