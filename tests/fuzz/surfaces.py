"""Every door through which somebody else's bytes come in: a row each.

A surface writes sound files once (`build`); a mutant changes some of them and `use` opens them
through the public functions, writing nowhere but to `out`. `command` is the same on the command
line.
"""

from __future__ import annotations

import gzip
import json
import lzma
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import torch
import zstandard

import litebert
from litebert.base.errors import LitebertError
from litebert.base.files import MANIFEST, json_text, write_json, write_manifest
from litebert.corpus.store import open_store
from litebert.finetuning.recipe import FOLDER as RECIPES
from litebert.finetuning.recipe import load_recipe
from litebert.finetuning.runs import read_result
from litebert.inference.minimal_pairs import read_minimal_pairs
from litebert.model.model import Model
from litebert.reproduction.findings import find_out
from litebert.reproduction.scale import SCALES, scaled_preset
from litebert.reproduction.table import load_tables
from litebert.tasks.data import open_data
from litebert.tasks.source import DataSource
from litebert.tasks.task import TASK_KEY
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from litebert.text.training import train_from_sentences
from litebert.train.checkpoint import Checkpoints, restore
from litebert.train.metrics import read_metrics
from litebert.train.optimizer import build_optimizer
from litebert.train.run_folder import describe, is_finished, open_run, save_run
from tests.corpus.stores import make_documents, make_store, write_wordpiece
from tests.fuzz.mutate import VALUES, mutate_file
from tests.text.conftest import many_sentences

SIZES = {"sentencepiece": 260, "wordpiece": 500, "bpe": 400}
TEXT = "A café: the cat sat, 2,000 times."
SHAPE: dict[str, Any] = {
    "vocab_size": 40, "embedding_size": 4, "hidden_size": 8, "num_hidden_layers": 2,
    "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 24,
}  # fmt: skip
LABELS = ("no", "yes")
TASK = {"name": "classify", "kind": "classify", "metrics": ["accuracy"], "labels": list(LABELS)}

Folder = Path
Use = Callable[[Folder, Path], None]


@dataclass(frozen=True)
class Surface:
    """Sound files, which of them are mutated, and who opens them."""

    build: Callable[[Folder], None]
    use: Use
    files: tuple[str, ...] = ("*",)
    command: Callable[[Folder, Path], list[str]] | None = None
    prepare: Callable[[Folder, random.Random], None] | None = None  # after a mutation


def _model(heads: tuple[str, ...], **changes: Any) -> Model:
    config = litebert.EncoderConfig.build({**SHAPE, **changes}, "fuzz")
    return Model.create(config, heads, LABELS)


def _build_model(folder: Folder) -> None:
    _model(("masked_lm", "sentence_pair", "span_boundary")).save(folder / "model")
    (folder / "model" / MANIFEST).unlink()


def _load_model(folder: Folder, out: Path) -> None:
    model = litebert.load(folder / "model")
    for name, tensor in model.state_dict().items():
        assert tensor.isfinite().all(), f"{name} is not finite and was accepted"
    model(torch.ones(1, 4, dtype=torch.long))


def _import(folder: Folder, out: Path) -> list[str]:
    return ["import", str(folder / "model"), str(out)]


def _build_sealed(folder: Folder) -> None:
    _model(("masked_lm",)).save(folder / "model")
    save_all(folder / "model", folder / "sound")


def save_all(source: Path, destination: Path) -> None:
    destination.mkdir()
    for path in source.iterdir():
        (destination / path.name).write_bytes(path.read_bytes())


def _load_sealed(folder: Folder, out: Path) -> None:
    """A folder with a manifest: nothing that differs from what was written may be accepted."""
    litebert.load(folder / "model")
    sound = {path.name: path.read_bytes() for path in (folder / "sound").iterdir()}
    found = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    assert found == sound, "a changed folder was accepted"


@cache
def _trained(kind: str) -> Tokenizer:
    return train_from_sentences(many_sentences(), kind, SIZES[kind], character_coverage=1.0)


def _build_task_model(folder: Folder) -> None:
    tokenizer = _trained("wordpiece")
    model = _model(("classification",), vocab_size=tokenizer.vocab_size)
    model.metadata[TASK_KEY] = TASK
    model.save(folder / "model", tokenizer=tokenizer)
    (folder / "model" / MANIFEST).unlink()
    (folder / "rows.csv").write_text(f'text\n"{TEXT}"\nno\n')


def _predict(folder: Folder, out: Path) -> None:
    for prediction in litebert.predict(folder / "model", folder / "rows.csv"):
        values = getattr(prediction, "probabilities", {}).values()
        assert all(0 <= value <= 1 for value in values), "a probability is none"


def _tokenizer(kind: str, *kept: str) -> Callable[[Folder], None]:
    def build(folder: Folder) -> None:
        _trained(kind).save(folder / "tokenizer")
        for path in (folder / "tokenizer").iterdir():
            if kept and path.name not in kept:
                path.unlink()

    return build


def _encode(folder: Folder, out: Path) -> None:
    tokenizer = load_tokenizer(folder / "tokenizer")
    ids = tokenizer.encode_with_offsets(TEXT).ids
    assert all(0 <= i < tokenizer.vocab_size for i in ids)
    tokenizer.decode(ids)


def _show(folder: Folder, out: Path) -> list[str]:
    return ["tokenizer", "show", str(folder / "tokenizer"), TEXT]


def _build_store(folder: Folder) -> None:
    tokenizer = write_wordpiece(folder / "tokenizer")
    make_store(folder / "store", make_documents(0, 12, (1, 4), (1, 6)), tokenizer, held_out=0.2)


def _read_store(folder: Folder, out: Path) -> None:
    store = open_store(folder / "store")
    store.require_all_parts()
    for number in range(len(store.paths)):
        shard = store.shard(number)
        for block in range(len(shard.blocks) - 1):
            store.block_ids(number, block)
        store.in_split(number, slice(None), "train")
    assert store.tokenizer.vocab_size == store.info.vocab_size
    store.check()


def _evaluate(folder: Folder, out: Path) -> list[str]:
    return ["inspect", str(folder / "store")]


STATE = {
    "step": 2, "tokens": 5, "skipped": 0, "seconds": 1.5, "metrics": 10, "batches": {"stage": 0},
    "sums": {"counts": [1.0], "values": [2.0, 3.0]}, "world_size": 1, "threads": 1,
    "device": "cpu", "torch": "2",
}  # fmt: skip


def _module() -> tuple[Any, Any]:
    module = torch.nn.Linear(3, 2)
    return module, build_optimizer(module, litebert.load_preset("albert-tiny").optimizer)


def _build_checkpoints(folder: Folder) -> None:
    module, optimizer = _module()
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    for step in (1, 2):
        Checkpoints(folder, 2).save(step, module, optimizer, {**STATE, "step": step})


def _seal(folder: Folder, chance: random.Random) -> None:
    """Now and then a forger who makes the manifest fit."""
    if chance.random() < 0.5:
        write_manifest(folder / "00000002")


def _restore(folder: Folder, out: Path) -> None:
    said: list[str] = []
    found = Checkpoints(folder, 2).last_good(said.append)
    assert found is not None, "the sound checkpoint was not found"
    module, optimizer = _module()
    state = restore(found, module, optimizer)
    assert state["step"] == int(found.name)
    assert all(parameter.isfinite().all() for parameter in module.parameters())


def _build_run(folder: Folder) -> None:
    preset = litebert.load_preset("albert-tiny")
    run = {**open_run(folder / "run", describe(preset, "x", None)), "unigram_loss": 5.0}
    took = {"finished": True, "step": 2, "tokens": 5, "seconds": 1.0}
    (folder / "run").mkdir()
    save_run(folder / "run", run | took)
    scores = {"dev": {"accuracy": 0.5, "f1": 0.25}}
    result = {
        "seed": 1, "learning_rate": 1e-4, "scores": scores, "step": 1, "steps": 2, "tokens": 3,
        "loss": 0.5, "collapsed": None, "seconds": 1.0, "doubt": None,
        "intervals": {"accuracy": [0.4, 0.6]},
    }  # fmt: skip
    report = {
        "task": "sst-2", "metric": "accuracy", "seeds": [result, result], "mean": 0.5,
        "median": 0.5, "deviation": 0.0, "best": 0.5, "collapses": 0, "train": 5, "dev": {"dev": 5},
        "truncated": 0, "windowed": 0,
    }  # fmt: skip
    write_json(folder / "run" / "result.json", result)
    write_json(folder / "run" / "report.json", report)


def _open_run(folder: Folder, out: Path) -> None:
    preset = litebert.load_preset("albert-tiny")
    problems = []
    for use in (
        lambda: is_finished(folder / "run"),
        lambda: open_run(folder / "run", describe(preset, "x", None)),
        lambda: read_result(folder / "run", "accuracy"),
        lambda: litebert.scores([folder / "run"]),
    ):
        try:
            use()
        except LitebertError as error:
            problems.append(error)
    if problems:
        raise problems[0]


def _build_metrics(folder: Folder) -> None:
    line = (
        '{"kind": "training", "step": %d, "tokens": 100, "loss": {"masked_lm": 5.0}, "accuracy": '
        '{"masked_lm": 0.5}, "learning_rate": 0.001, "gradient_norm": 1.0, "time": {"seconds": 2.0,'
        ' "progress": 0.5, "tokens_per_second": 8.0, "data_fraction": 0.0}}\n'
    )
    evaluation = (
        '{"kind": "evaluation", "step": 3, "tokens": 100, "loss": {"masked_lm": 5.0}, '
        '"scores": {"dev": {"f1": 0.5}}, "sample": "a b", "time": {"seconds": 2.0}}\n'
    )
    (folder / "run").mkdir()
    text = "".join(line % step for step in range(1, 4)) + evaluation
    (folder / "run" / "metrics.jsonl").write_text(text)


def _read_metrics(folder: Folder, out: Path) -> None:
    lines = read_metrics(folder / "run")
    if sum((folder / "run" / "metrics.jsonl").read_bytes()) % 40 == 0 and lines:
        litebert.plot([folder / "run"], out=out.with_suffix(".png"))


def _plot(folder: Folder, out: Path) -> list[str]:
    return ["plot", str(folder / "run"), "--out", str(out.with_suffix(".png"))]


def _build_settings(folder: Folder) -> None:
    shipped = Path(litebert.__file__).parent / "configs"
    for name in ("albert-tiny", "electra-small", "bert-base"):
        (folder / f"{name}.toml").write_bytes((shipped / f"{name}.toml").read_bytes())
    (folder / "own.toml").write_text("extends = 'albert-tiny.toml'\n[model]\nhidden_size = 64\n")


def _load_presets(folder: Folder, out: Path) -> None:
    for path in sorted(folder.glob("*.toml")):
        litebert.load_preset(str(path))


def _plan(folder: Folder, out: Path) -> list[str]:
    return ["plan", *map(str, sorted(folder.glob("*.toml")))]


def _build_recipes(folder: Folder) -> None:
    for path in RECIPES.glob("*.toml"):
        (folder / path.name).write_bytes(path.read_bytes())


def _load_recipes(folder: Folder, out: Path) -> None:
    for path in sorted(folder.glob("*.toml")):
        for task in ("sst-2", "classify"):
            load_recipe(str(path), task, without_dropout=True)


def _build_options(folder: Folder) -> None:
    (folder / "options.json").write_text('{"set": ["model.hidden_size=64"]}')


OPTIONS = (
    "model.hidden_size", "model.num_hidden_layers", "model.sharing", "model", "data.max_length",
    "budget", "objectives", "stages", "optimizer.betas", "masking.probability", "seed", "nothing",
    "model.num_hidden_groups", "model.inner_group_num", "data", "generator.hidden_size", "",
)  # fmt: skip


SOME = (*VALUES, *(8, 16, 24, 64, "none", "all", "1steps", "[]", "[0.9, 0.99]") * 4)


def _draw_options(folder: Folder, chance: random.Random) -> None:
    """Options are no file: they are drawn here and handed over by one."""
    drawn = [
        f"{chance.choice(OPTIONS)}{chance.choice(('=', '=', '==', '.x='))}{chance.choice(SOME)}"
        for _ in range(chance.choice((0, 1, 1, 2)))
    ]
    more = {
        "budget": chance.choice(
            ("1steps", "5tok", "1h", "", "-1steps", "9" * 400 + "steps", "1e9tok")
        ),
        "batch_size": chance.choice((1, 8, 64, 0, -1, 10**9, 10**30)),
        "max_length": chance.choice((8, 16, 64, 0, -4, 513, 10**30)),
    }
    (folder / "options.json").write_text(json_text({"set": drawn, **more}), errors="replace")


def _use_options(folder: Folder, out: Path) -> None:
    options = json.loads((folder / "options.json").read_text())
    litebert.plan("albert-tiny", overrides=options.pop("set"), **options)


def _build_tables(folder: Folder) -> None:
    rows = [{"text": f"word {i}", "label": str(i % 2)} for i in range(12)]
    csv = "text,label\n" + "".join(f'"{row["text"]}",{row["label"]}\n' for row in rows)
    (folder / "rows.csv").write_text(csv)
    (folder / "rows.tsv").write_text(csv.replace(",", "\t").replace('"', ""))
    lines = "".join(json_text(row).replace("\n", " ") + "\n" for row in rows)
    (folder / "rows.jsonl").write_text(lines)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "rows.parquet")


def _build_archives(folder: Folder) -> None:
    text = b"text,label\n" + b"".join(b"word %d,%d\n" % (i, i % 2) for i in range(12))
    (folder / "rows.csv.gz").write_bytes(gzip.compress(text))
    (folder / "rows.csv.xz").write_bytes(lzma.compress(text))
    (folder / "rows.csv.zst").write_bytes(zstandard.compress(text))


def _read_tables(folder: Folder, out: Path) -> None:
    """Every table, also as what it is not."""
    problems = []
    for path in sorted(folder.glob("rows.*")):
        for kind in ("classify", "regress"):
            try:
                open_data(kind, DataSource.build(train=path))
            except LitebertError as error:
                problems.append(error)
    if problems:
        raise max(problems, key=lambda error: len(str(error)))


def _build_task_files(folder: Folder) -> None:
    answer = {"text": "cat", "answer_start": 4}
    questions = [
        {
            "id": str(i),
            "question": "who?",
            "answers": [answer][i % 2 :],
            "is_impossible": i % 2 == 1,
        }
        for i in range(6)
    ]
    context = {"context": "the cat sat on a mat", "qas": questions}
    squad = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [context]}]}
    write_json(folder / "squad.json", squad)
    (folder / "words.txt").write_text("the O\ncat B-x\nsat I-x\n\n" * 6)
    choice = [
        {"context": "c", "question": "q", "options": ["a", "b", "c"], "answer": i % 3}
        for i in range(6)
    ]
    lines = "".join(json_text(row).replace("\n", " ") + "\n" for row in choice)
    (folder / "choice.jsonl").write_text(lines)
    (folder / "SST-2").mkdir()
    for split in ("train", "dev"):
        rows = "".join(f"a {i} \t{i % 2}\n" for i in range(8))
        (folder / "SST-2" / f"{split}.tsv").write_text("sentence\tlabel\n" + rows)


def _read_task_files(folder: Folder, out: Path) -> None:
    problems = []
    for task, source in (
        ("qa", DataSource.build(train=folder / "squad.json")),
        ("tag", DataSource.build(train=folder / "words.txt")),
        ("choice", DataSource.build(train=folder / "choice.jsonl")),
        ("sst-2", DataSource.build(data=folder / "SST-2")),
    ):
        try:
            open_data(task, source)
        except LitebertError as error:
            problems.append(error)
    if problems:
        raise problems[0]


def _build_tensorflow(folder: Folder) -> None:
    _model(("masked_lm", "sentence_pair")).save(folder / "model")
    litebert.export_model(folder / "model", folder / "google", format="tensorflow")
    (folder / "google" / MANIFEST).unlink()


def _import_tensorflow(folder: Folder, out: Path) -> None:
    model = litebert.import_model(folder / "google", out)
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())


def _build_corpus(folder: Folder) -> None:
    write_wordpiece(folder / "tokenizer")
    (folder / "a.txt").write_text("One two. Three four.\n\nFive six seven.\n" * 5)
    (folder / "b.jsonl").write_text('{"text": "Eight nine."}\n{"text": "Ten."}\n' * 4)
    rows = pyarrow.Table.from_pylist([{"text": "Eleven. Twelve."}] * 4)
    pyarrow.parquet.write_table(rows, folder / "c.parquet")
    (folder / "d.txt.gz").write_bytes(gzip.compress(b"Zipped words. More of them.\n\nEnd.\n"))


def _prepare(folder: Folder, out: Path) -> None:
    texts = [str(path) for path in sorted(folder.glob("?.*"))]
    litebert.prepare(texts, folder / "tokenizer", out, num_workers=1)


def _build_paper_tables(folder: Folder) -> None:
    """A table of a paper, and minimal pairs."""
    shipped = Path(litebert.__file__).parent / "reproduction" / "tables"
    (folder / "t5.toml").write_bytes((shipped / "t5.toml").read_bytes())
    row = {"sentence_good": "A cat sits.", "sentence_bad": "A cat sit.", "UID": "agreement"}
    (folder / "pairs.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row) + "\n")


def _read_paper_tables(folder: Folder, out: Path) -> None:
    read_minimal_pairs(folder)
    for table in load_tables([str(folder / "t5.toml")]):
        find_out(table, None, None)
        for row in table.rows:
            scaled_preset(table, row, SCALES["minutes"])


SURFACES: dict[str, Surface] = {
    "config": Surface(_build_model, _load_model, ("model/config.json",), _import),
    "weights": Surface(_build_model, _load_model, ("model/*.safetensors",), _import),
    "manifest": Surface(_build_sealed, _load_sealed, ("model/*",), _import),
    "task model": Surface(_build_task_model, _predict, ("model/config.json", "model/*.json")),
    "sentencepiece": Surface(_tokenizer("sentencepiece"), _encode, ("tokenizer/*",), _show),
    "wordpiece": Surface(_tokenizer("wordpiece"), _encode, ("tokenizer/*",), _show),
    "bpe": Surface(_tokenizer("bpe"), _encode, ("tokenizer/*",), _show),
    "tokenizer.json": Surface(
        _tokenizer("sentencepiece", "tokenizer.json"), _encode, ("tokenizer/*",), _show
    ),
    "store": Surface(_build_store, _read_store, ("store/*.json",), _evaluate),
    "shard": Surface(_build_store, _read_store, ("store/shards/*",), _evaluate),
    "checkpoint": Surface(_build_checkpoints, _restore, ("00000002/*",), prepare=_seal),
    "run": Surface(_build_run, _open_run, ("run/*",)),
    "metrics": Surface(_build_metrics, _read_metrics, ("run/*",), _plot),
    "preset": Surface(_build_settings, _load_presets, ("*.toml",), _plan),
    "recipe": Surface(_build_recipes, _load_recipes, ("*.toml",)),
    "options": Surface(_build_options, _use_options, (), prepare=_draw_options),
    "table": Surface(_build_tables, _read_tables, ("rows.*",)),
    "archive": Surface(_build_archives, _read_tables, ("rows.*",)),
    "task files": Surface(_build_task_files, _read_task_files, ("*.*", "SST-2/*")),
    "tensorflow": Surface(_build_tensorflow, _import_tensorflow, ("google/*",)),
    "paper tables": Surface(_build_paper_tables, _read_paper_tables, ("*.toml", "*.jsonl")),
    "corpus": Surface(_build_corpus, _prepare, ("?.*",)),
}


def mutants(folder: Folder, surface: Surface, chance: random.Random) -> dict[Path, bytes]:
    """Mutants of one or two of a surface's files, by path."""
    paths = sorted({path for pattern in surface.files for path in folder.glob(pattern)})
    paths = [path for path in paths if path.is_file()]
    chosen = chance.sample(paths, min(len(paths), chance.choice((1, 1, 1, 2))))
    return {path: mutate_file(path.name, path.read_bytes(), chance) for path in chosen}
