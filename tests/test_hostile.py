"""Files and values from anywhere: one sentence, nothing that hangs, nothing broken accepted.

One test a finding. `make fuzz` looks for more of them.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from safetensors.torch import load_file, save_file

import litebert
from litebert.base import errors
from litebert.base.errors import FileError, FormatError, LitebertError, SettingsError
from litebert.base.files import check_manifest, read_json, write_manifest
from litebert.base.settings import parse_overrides
from litebert.finetuning.finetune import FinetuneReport
from litebert.finetuning.recipe import load_recipe
from litebert.finetuning.runs import read_result
from litebert.inference.model_folder import task_of
from litebert.model.model import Model
from litebert.tasks.metrics.squad import squad_v2
from litebert.tasks.registry import load_task
from litebert.tasks.task import TASK_KEY
from litebert.train.checkpoint import Checkpoints, read_state
from litebert.train.metrics import read_metrics
from tests.tasks.small import write_start
from tests.test_bad_training import ALBERT
from tests.train.runs import write_store

RUN = [*ALBERT, "checkpoint.every=1"]
TINY = {
    "vocab_size": 12, "embedding_size": 4, "hidden_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16,
}  # fmt: skip


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """A model without a manifest, as people hand them on."""
    config = litebert.EncoderConfig(**TINY)  # type: ignore[arg-type]
    Model.create(config, ("masked_lm",)).save(tmp_path / "model")
    (tmp_path / "model" / "manifest.json").unlink()
    return tmp_path / "model"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store and a finished run of a few steps."""
    folder = tmp_path_factory.mktemp("finished")
    store = write_store(folder)
    name, *overrides = RUN
    assert litebert.pretrain(name, store, folder / "run", overrides=overrides).finished
    return store, folder / "run"


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# ---------------------------------------------------------------------------- what errors say


def test_messages_are_short_printable_lines() -> None:
    message = str(FormatError("file.json: " + "x\n\x1b[31m\udcff" * 50_000 + "; copy it again"))
    assert len(message) <= errors.LONGEST_MESSAGE
    assert message.isprintable()
    assert message.startswith("file.json: x ")
    assert message.endswith("; copy it again")
    assert str(FileError("a  b")) == "a  b"  # a path with two spaces stays


def test_a_value_of_100_000_characters_is_not_echoed(model_folder: Path) -> None:
    edit(model_folder / "config.json", hidden_act="x" * 100_000)
    with pytest.raises(FormatError, match=r"hidden_act 'xxx.* … .*known: gelu") as caught:
        litebert.load(model_folder)
    assert len(str(caught.value)) <= errors.LONGEST_MESSAGE


@pytest.mark.parametrize("key", [".".join("a" * 3000), "model." + "b" * 100_000])
def test_settings_of_endless_names(key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        litebert.load_preset("albert-tiny", [f"{key}=1"])
    assert len(str(caught.value)) <= errors.LONGEST_MESSAGE


def test_json_nested_too_deep(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": ' * 500 + "1" + "}" * 500)
    with pytest.raises(FormatError, match="100 deep"):
        read_json(tmp_path / "x.json")
    with pytest.raises(SettingsError, match="100 deep"):
        parse_overrides(["a=" + "[" * 150 + "]" * 150])


# ---------------------------------------------------------------------------- strange files

NAMES = ("config.json", "model.safetensors", "litebert.safetensors", "manifest.json")


@pytest.mark.parametrize("name", [*NAMES, "model.safetensors.index.json"])
def test_a_pipe_in_a_model_folder_does_not_hang(name: str, model_folder: Path) -> None:
    if name.endswith("index.json"):
        (model_folder / "model.safetensors").unlink()
    (model_folder / name).unlink(missing_ok=True)
    os.mkfifo(model_folder / name)
    with pytest.raises(FileError, match="not a regular file"):
        litebert.load(model_folder)


@pytest.mark.parametrize("name", ["spiece.model", "tokenizer_config.json"])
def test_a_pipe_in_a_tokenizers_folder_does_not_hang(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileError, match=r"not a regular file|no tokenizer here"):
        litebert.load_tokenizer(tmp_path)


def test_pipes_elsewhere_do_not_hang(tmp_path: Path, finished: tuple[Path, Path]) -> None:
    run = Path(shutil.copytree(finished[1], tmp_path / "run"))
    for path, use in (
        (run / "metrics.jsonl", lambda: litebert.plot([run], out=tmp_path / "x.png")),
        (run / "run.json", lambda: litebert.evaluate(run, corpus=finished[0])),
        (tmp_path / "own.toml", lambda: litebert.load_preset(str(tmp_path / "own.toml"))),
        (tmp_path / "own.csv", lambda: litebert.predict(run, tmp_path / "own.csv")),
    ):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        with pytest.raises(LitebertError):
            use()


@pytest.mark.parametrize("name", ["lock", "metrics.jsonl"])
def test_pipes_where_a_run_writes_do_not_hang(
    name: str, tmp_path: Path, finished: tuple[Path, Path]
) -> None:
    run = Path(shutil.copytree(finished[1], tmp_path / "run"))
    edit(run / "run.json", finished=False)
    (run / name).unlink()
    os.mkfifo(run / name)
    preset, *overrides = RUN
    with pytest.raises(FileError, match=r"cannot be written|not a regular file"):
        litebert.pretrain(preset, finished[0], run, overrides=overrides)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_links_are_followed_to_regular_files_only(name: str, model_folder: Path) -> None:
    """Hugging Face's cache is made of links that lead out of the folder."""
    elsewhere = model_folder.parent / "blob"
    (model_folder / name).rename(elsewhere)
    (model_folder / name).symlink_to(elsewhere)
    assert litebert.load(model_folder).heads
    (model_folder / name).unlink()
    (model_folder / name).symlink_to("/dev/zero")
    with pytest.raises(FileError, match="not a regular file"):
        litebert.load(model_folder)


def test_modes_are_those_of_the_umask(tmp_path: Path) -> None:
    config = litebert.EncoderConfig(**TINY)  # type: ignore[arg-type]
    before = os.umask(0o027)
    try:
        Model.create(config).save(tmp_path / "model")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "model").iterdir()}
    assert modes == {0o640}
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o750


# ---------------------------------------------------------------------------- manifests


@pytest.mark.parametrize(
    "entry",
    [
        {"a": {"bytes": "many", "sha256": "0"}},
        {"a": {"bytes": None, "sha256": "0"}},
        {"a": {"bytes": 1.5, "sha256": "0"}},
        {"a" * 300: {"bytes": 1, "sha256": "0"}},
        {"a\0b": {"bytes": 1, "sha256": "0"}},
        {"a": []},
    ],
    ids=str,
)
def test_manifests_with_odd_entries(entry: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    text = json.dumps({"format": 1, "files": entry}, indent=2, ensure_ascii=False) + "\n"
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(FileError, match="manifest"):
        check_manifest(tmp_path)


def test_a_manifest_lists_every_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    write_manifest(tmp_path)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "hidden").touch()
    check_manifest(tmp_path)
    (tmp_path / "litebert.safetensors").touch()
    with pytest.raises(FileError, match=r"litebert\.safetensors: not listed in manifest\.json"):
        check_manifest(tmp_path)


# ---------------------------------------------------------------------------- weights


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_weights_that_are_not_finite_are_named(value: float, model_folder: Path) -> None:
    file = model_folder / "model.safetensors"
    tensors = load_file(file)
    name = sorted(tensors)[3]
    changed = tensors[name].double()
    changed.view(-1)[-1] = value
    save_file(tensors | {name: changed}, file)
    with pytest.raises(FormatError, match=f"{name!r} has values that are NaN or infinite"):
        litebert.load(model_folder)
    with pytest.raises(FormatError, match="NaN or infinite"):
        litebert.import_model(model_folder, model_folder.parent / "out")
    assert not (model_folder.parent / "out").exists()


def test_a_tensor_in_two_files_is_refused(model_folder: Path) -> None:
    name = "encoder.embeddings.token.weight"
    save_file({name: torch.zeros(12, 4)}, model_folder / "litebert.safetensors")
    with pytest.raises(FormatError, match=f"{name!r} is also in another file"):
        litebert.load(model_folder)


@pytest.mark.parametrize(
    ("layers", "inner", "sharing"), [(10_000, 1, "none"), (10_000, 10_000, "all"), (9, 900, "ffn")]
)
def test_too_many_layers_are_refused_at_once(layers: int, inner: int, sharing: str) -> None:
    shape = {"num_hidden_layers": layers, "inner_group_num": inner, "sharing": sharing}
    with pytest.raises(SettingsError, match="blocks"):
        litebert.EncoderConfig.build({**TINY, **shape}, "test")


@pytest.mark.parametrize(
    "labels", [{"0": "a", "2": "b"}, {"1": "a", "2": "b"}, {"00": "a", "1": "b"}, {"²": "a"}]
)
def test_labels_have_the_numbers_0_1_2(labels: dict[str, str], model_folder: Path) -> None:
    edit(model_folder / "config.json", id2label=labels)
    with pytest.raises(FormatError, match="id2label"):
        litebert.load(model_folder)


@pytest.mark.parametrize("labels", [(), ("a",), ("a", "b", "c"), ("a", "a")])
def test_a_task_has_the_labels_of_its_head(labels: tuple[str, ...], tmp_path: Path) -> None:
    config = litebert.EncoderConfig(**TINY)  # type: ignore[arg-type]
    model = Model.create(config, ("classification",), ("a", "b"))
    task = {"name": "classify", "kind": "classify", "metrics": ["accuracy"], "labels": labels}
    model.metadata[TASK_KEY] = task
    with pytest.raises(LitebertError, match="label"):
        task_of(model, tmp_path)


# ---------------------------------------------------------------------------- settings


@pytest.mark.parametrize("row", ["any = 5", "classify = [1]", "[any]\nwithout_dropout = 'x'"])
def test_rows_of_a_recipe_are_tables(row: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(row)
    with pytest.raises(SettingsError, match="expected a table"):
        load_recipe(str(tmp_path / "own.toml"), "classify", without_dropout=True)


def test_a_preset_that_extends_itself_through_a_detour(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "own.toml").write_text("extends = '../here/own.toml'")
    with pytest.raises(SettingsError, match="circle"):
        litebert.load_preset(str(tmp_path / "here" / "own.toml"))


@pytest.mark.parametrize("name", ["a" * 5000, "a" * 5000 + ".toml", "a\0.toml"])
def test_names_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f"extends = {json.dumps(name)}")
    uses: list[Callable[[], Any]] = [
        lambda: litebert.load_preset(name),
        lambda: litebert.load_preset(str(tmp_path / "own.toml")),
        lambda: load_recipe(name, "classify"),
        lambda: litebert.load_tokenizer(name),
        lambda: litebert.load(name),
        lambda: litebert.open_store(name),
        lambda: litebert.plot([name], out=tmp_path / "x.png"),
        lambda: litebert.scores([name]),
        lambda: litebert.import_model(name, tmp_path / "out"),
    ]
    for use in uses:
        with pytest.raises(LitebertError) as caught:
            use()
        assert len(str(caught.value)) <= errors.LONGEST_MESSAGE


@pytest.mark.parametrize("change", [{"sequences": 0}, {"max_length": -4}])
def test_impossible_evaluations(change: Any, finished: tuple[Path, Path]) -> None:
    with pytest.raises(SettingsError, match=r"--sequences 0|--max-length -4"):
        litebert.evaluate(finished[1], corpus=finished[0], **change)


# ---------------------------------------------------------------------------- runs

STATES: dict[str, dict[str, Any]] = {
    "a step from elsewhere": {"step": 10**30},
    "no sums": {"sums": None},
    "threads without end": {"threads": 10**9},
    "tokens a word": {"tokens": "many"},
}


@pytest.mark.parametrize("case", STATES)
def test_a_checkpoint_whose_state_is_none_is_left_out(
    case: str, finished: tuple[Path, Path], tmp_path: Path
) -> None:
    """Also where its manifest fits: the one before is used."""
    run = Path(shutil.copytree(finished[1], tmp_path / "run"))
    kept = Checkpoints(run / "checkpoints", 2)
    before, newest = kept.found()
    edit(newest / "state.json", **STATES[case])
    write_manifest(newest)
    said: list[str] = []
    assert kept.last_good(said.append) == before
    assert "damaged and left out" in said[0]


def test_a_state_whose_numbers_are_texts_comes_back_as_numbers(
    finished: tuple[Path, Path], tmp_path: Path
) -> None:
    newest = Checkpoints(Path(shutil.copytree(finished[1], tmp_path / "run")) / "checkpoints", 2)
    path = newest.found()[-1]
    edit(path / "state.json", step=str(int(path.name)))
    assert read_state(path)["step"] == int(path.name)


def test_inspect_compares_ids_with_their_checksum(
    finished: tuple[Path, Path], tmp_path: Path
) -> None:
    store = Path(shutil.copytree(finished[0], tmp_path / "store"))
    (shard,) = (store / "shards").iterdir()
    content = bytearray(shard.read_bytes())
    ids = litebert.open_store(store).shard(0).ids
    place = bytes(content).index(ids.tobytes())
    content[place : place + 2] = b"\xff\xff"  # beyond the vocabulary
    shard.write_bytes(content)
    with pytest.raises(FileError, match="does not match its checksum"):
        litebert.inspect([store])


def test_a_manifest_without_numbers_does_not_prevent_the_checkpoint_before(
    finished: tuple[Path, Path], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished[1], tmp_path / "run"))
    kept = Checkpoints(run / "checkpoints", 2)
    before, newest = kept.found()
    manifest = (newest / "manifest.json").read_text()
    (newest / "manifest.json").write_text(manifest.replace('"bytes": ', '"bytes": "x", "y": ', 1))
    assert kept.last_good(lambda _: None) == before


@pytest.mark.parametrize("change", [{"finished": None}, {"finished": True, "step": "x"}])
def test_run_json_with_wrong_keys(change: Any, finished: tuple[Path, Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished[1], tmp_path / "run"))
    edit(run / "run.json", **change)
    name, *overrides = RUN
    with pytest.raises(FormatError, match=r"run\.json"):
        litebert.pretrain(name, finished[0], run, overrides=overrides)


@pytest.mark.parametrize("content", [{}, {"seed": 1}, {"scores": {}}])
def test_results_and_reports_with_wrong_keys(content: Any, tmp_path: Path) -> None:
    for name in ("result.json", "report.json"):
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(FormatError, match=r"result\.json"):
        read_result(tmp_path, "accuracy")
    with pytest.raises(FormatError, match="not a report of `litebert finetune`"):
        FinetuneReport.load(tmp_path / "report.json")


def test_a_finished_run_needs_no_lock(
    finished: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that cannot be written it still says that it is finished."""

    def read_only(*_: object) -> None:
        raise FileError("read-only")

    monkeypatch.setattr("litebert.train.pretrain.lock_folder", read_only)
    name, *overrides = RUN
    assert litebert.pretrain(name, finished[0], finished[1], overrides=overrides).finished


LINES = [
    "[" * 100_000, "5", "[1]", '{"kind": []}', '{"kind": "training", "step": "x"}',
    '{"kind": "training", "step": 1e400}',
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:40])
def test_metrics_that_are_none(line: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(line + "\n")
    with pytest.raises(FormatError, match=r"metrics\.jsonl, line 1"):
        read_metrics(tmp_path)


def test_a_picture_into_a_folder_that_cannot_be_written(
    finished: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FileError, match="cannot be written to"):
        litebert.plot([finished[1]], out=tmp_path / "x.png")


# ---------------------------------------------------------------------------- tables


@pytest.mark.parametrize("label", ["--5", "9" * 5000, "-", "²"])
def test_labels_that_look_like_numbers(label: str, tmp_path: Path) -> None:
    kind = type(load_task({"name": "x", "kind": "classify", "metrics": ["accuracy"]}, "test"))
    path = tmp_path / "own.csv"
    path.write_text(f"text,label\na,1\nb,{label}\nc,-2\n")
    examples = kind.read_table(path, litebert_columns(), labelled=True, say=print)[0]
    assert set(kind.settings_for(examples, path).labels) == {"1", "-2", label}


def litebert_columns() -> Any:
    from litebert.tasks.readers.column_mapping import ColumnMapping

    return ColumnMapping.build(None)


BOMBS: dict[str, tuple[str, bytes]] = {
    "tiny rows": ("own.csv.gz", b"text,label\n" + b"a,b\n" * 3_000_000),
    "tiny objects": ("own.jsonl.gz", b"{}\n" * 3_000_000),
    "a long row": ("own.csv.gz", b"text,label\n" + b"a" * 20_000_000),
    "a questionnaire": ("own.json.gz", b'{"data": [' + b"{}," * 5_000_000 + b"{}]}"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_small_files_that_unfold_without_end(case: str, tmp_path: Path) -> None:
    name, content = BOMBS[case]
    (tmp_path / name).write_bytes(gzip.compress(content, 1))
    kind = "qa" if ".json." in name else "classify"
    with pytest.raises(FormatError, match="or too many lines for its size"):
        litebert.finetune(
            write_start(tmp_path / "start"), kind, tmp_path / "out", train=tmp_path / name
        )


def test_parquet_that_unfolds_without_end(tmp_path: Path) -> None:
    for rows, value in ((3_000_000, "a"), (1000, "a" * 1_000_000)):
        places = pyarrow.array(np.zeros(rows, np.int32))
        text = pyarrow.DictionaryArray.from_arrays(places, [value])
        table = pyarrow.table({"text": text, "label": text})
        pyarrow.parquet.write_table(table, tmp_path / "own.parquet", compression="zstd")
        assert (tmp_path / "own.parquet").stat().st_size < 100_000
        with pytest.raises(FormatError, match="more than"):
            litebert.finetune(
                write_start(tmp_path / "start"), "classify", tmp_path / "out",
                train=tmp_path / "own.parquet",
            )  # fmt: skip
        shutil.rmtree(tmp_path / "start")


def test_an_answer_of_nothing_counts_alike_in_search_and_score() -> None:
    """Where the official search takes a point off: documented in tasks/metrics/squad.py."""
    golds, odds = {"q": [], "r": ["x"]}, {"q": 0.1, "r": 0.2}
    found = squad_v2(golds, {"q": "the", "r": "x"}, odds)
    assert found["exact"] == found["best_exact"] == 100.0
