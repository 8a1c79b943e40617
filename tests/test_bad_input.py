"""A user's mistake: one sentence, exit code 2, no traceback, and nothing half-written."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

import litebert
from litebert.base.errors import FormatError, SettingsError
from litebert.base.files import LARGEST_JSON
from tests.parity.families import build, config
from tests.test_cli import run

KEY = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.key.weight"
SMALL = "model.vocab_size=9"

Change = Callable[[Path], None]
Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that must fail as a mistake of the user; its one sentence."""

    def call(*arguments: object) -> str:
        code = run(monkeypatch, *arguments)
        out, err = capsys.readouterr()
        assert code == 2
        assert out == ""
        assert err.startswith("litebert: ")
        assert err.index("\n") == len(err) - 1
        assert len(err) < 2000
        return err

    return call


# ---------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["albert-bse"], ["'albert-bse'", "did you mean 'albert-base'?"]),
        (["robrta-large"], ["'robrta-large'", "did you mean 'roberta-large'?"]),
        (["zzz"], ["'zzz'", "known: albert-base", "spanbert-large"]),
        (["../presets/albert-base"], ["'../presets/albert-base'"]),
        (["albert-tiny", "albert-tny"], ["'albert-tny'", "did you mean 'albert-tiny'?"]),
        (["missing.toml"], ["missing.toml: no such preset file"]),
        (["albert-tiny", "--budget", "5"], ["'5'", "200Mtok"]),
        (["albert-tiny", "--budget", "5 parsecs"], ["'5 parsecs'", "200Mtok"]),
        (["albert-tiny", "--budget", "0tok"], ["'0tok'", "200Mtok"]),
        (["albert-tiny", "--budget", "_tok"], ["'_tok'", "200Mtok"]),
        (["albert-tiny", "--budget", ""], ["''", "200Mtok"]),
        (["albert-tiny", "--budget", "2h"], ["time", "--measure"]),
        (["albert-tiny", "--max-length", "513"], ["max_length 513", "8 to 512"]),
        (["roberta-base", "--max-length", "513"], ["max_length 513", "8 to 512"]),
        (["albert-tiny", "--max-length", "0"], ["max_length 0"]),
        (["albert-tiny", "--batch-size", "0"], ["batch_size 0"]),
        (["albert-tiny", "--precision", "fp8"], ["'fp8'", "bf16"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_plans(arguments: list[str], words: list[str], refused: Refused) -> None:
    sentence = refused("plan", *arguments)
    for word in words:
        assert word in sentence


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("model.hiden_size=256", ["'model.hiden_size'", "did you mean 'model.hidden_size'?"]),
        ("modle.hidden_size=256", ["'modle'"]),
        ("hidden_size=256", ["'hidden_size'", "did you mean 'model.hidden_size'?"]),
        ("model.hidden_size", ["--set model.hidden_size:", "key=value"]),
        ("=256", ["--set =256:", "key=value"]),
        ("model.hidden_size=wide", ["model.hidden_size = 'wide'", "integer"]),
        ("model.hidden_size=", ["model.hidden_size = ''", "integer"]),
        ("model.hidden_size=127", ["hidden_size 127", "num_attention_heads 4"]),
        ("model.num_hidden_layers=0", ["model.num_hidden_layers = 0"]),
        ("model.num_hidden_layers=-3", ["model.num_hidden_layers = -3"]),
        ("model.embedding_size=256", ["embedding_size 256", "hidden_size 128", "E <= H"]),
        ("model.num_hidden_groups=5", ["num_hidden_groups 5", "num_hidden_layers 2"]),
        ("model.sharing=some", ["model.sharing = 'some'", "'attention'"]),
        ("model.family=bert", ["'bert'", "embedding_size 64"]),
        ("model.hidden_dropout_prob=1", ["model.hidden_dropout_prob = 1"]),
        ("model.layer_norm_eps=nan", ["model.layer_norm_eps = nan"]),
        ("model.layer_norm_eps=inf", ["model.layer_norm_eps = inf"]),
        ("model.pad_token_id=8000", ["pad_token_id 8000", "vocab_size 8000"]),
        ("model.projection=false", ["projection"]),
        ("model.vocab_size=1000000000000000000", ["vocab_size", "1000000000000000000"]),
        ("model.hidden_size=1000000000000", ["hidden_size", "1000000000000"]),
        ("model=5", ["model = 5"]),
        ('objectives=["masked_langage"]', ["'masked_langage'", "did you mean 'masked_lm'?"]),
    ],
)
def test_bad_sets(assignment: str, words: list[str], refused: Refused) -> None:
    sentence = refused("plan", "albert-tiny", "--set", assignment)
    for word in words:
        assert word in sentence
    assert "{" not in sentence  # what does not fit, not the whole table it stands in


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = = 'x'", ["own.toml", "not valid TOML", "line 1, column 9"]),
        ("extends = 'albert-tiny'\n[model]\nhiden_size = 3", ["own.toml", "'model.hidden_size'?"]),
        ("extends = 'albert-tiny'\ncolour = 3", ["own.toml", "'colour'"]),
        ("extends = 'albert-tny'", ["'albert-tny'", "did you mean 'albert-tiny'?"]),
        ("extends = 'gone.toml'", ["gone.toml", "no such"]),
        ("extends = 'own.toml'", ["own.toml", "circle"]),
        ("extends = 'other.toml'", ["own.toml", "other.toml", "circle"]),
        ("extends = 5", ["own.toml", "extends", "5"]),
        ("extends = ['albert-tiny']", ["own.toml", "extends", "['albert-tiny']"]),
        ("", ["own.toml", "'title' is missing", "'model' is missing"]),
        ("extends = 'albert-tiny'\nmodel = 5", ["own.toml", "model = 5"]),
    ],
)
def test_bad_preset_files(
    text: str, words: list[str], refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.toml").write_text(text)
    (tmp_path / "other.toml").write_text("extends = 'own.toml'")
    monkeypatch.chdir(tmp_path)
    sentence = refused("plan", "own.toml")
    for word in words:
        assert word in sentence


# ---------------------------------------------------------------------------- folders


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models that transformers saved."""
    folder = tmp_path_factory.mktemp("foreign")
    build("AlbertForPreTraining", config("albert")).save_pretrained(folder / "albert")
    build("RobertaForMaskedLM", config("roberta")).save_pretrained(folder / "roberta")
    return folder


@pytest.fixture
def source(foreign: Path, tmp_path: Path) -> Path:
    """A copy of the ALBERT, to damage."""
    return Path(shutil.copytree(foreign / "albert", tmp_path / "source"))


def settings(**changes: Any) -> Change:
    """Other values in config.json."""

    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


def content(name: str, data: bytes) -> Change:
    """Other bytes in a file."""
    return lambda folder: (folder / name).write_bytes(data) and None


def gone(name: str) -> Change:
    """A file less."""
    return lambda folder: (folder / name).unlink()


def tensors(alter: Callable[[dict[str, Tensor]], Mapping[str, Tensor]]) -> Change:
    """Other tensors in the weights."""

    def change(folder: Path) -> None:
        file = folder / "model.safetensors"
        save_file(dict(alter(load_file(file))), file, metadata={"format": "pt"})

    return change


def index(weight_map: Any) -> Change:
    """An index instead of the weights, which move outside of the folder."""

    def change(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder.parent / "evil.safetensors")
        text = json.dumps({"metadata": {}, "weight_map": weight_map})
        (folder / "model.safetensors.index.json").write_text(text)

    return change


def cut(keep: int | float) -> Change:
    """Weights that end early: after so many bytes, or so large a share."""

    def change(folder: Path) -> None:
        file = folder / "model.safetensors"
        data = file.read_bytes()
        size = int(keep * len(data)) if isinstance(keep, float) else keep
        file.write_bytes(data[:size])

    return change


def huge(folder: Path) -> None:
    with (folder / "config.json").open("wb") as stream:
        stream.truncate(LARGEST_JSON + 1)


def pickle_only(name: str) -> Change:
    """Weights as a pickle and no others."""

    def change(folder: Path) -> None:
        torch.save(load_file(folder / "model.safetensors"), folder / "weights")
        (folder / "model.safetensors").unlink()
        (folder / "weights").rename(folder / name)

    return change


DAMAGES: dict[str, tuple[Change, list[str]]] = {
    "no config": (gone("config.json"), ["config.json: no such file"]),
    "empty config": (content("config.json", b"\n"), ["config.json", "not readable as JSON"]),
    "half a config": (content("config.json", b'{"a": '), ["config.json", "not readable as JSON"]),
    "config not text": (content("config.json", b"\xff\xff"), ["config.json"]),
    "config a list": (content("config.json", b"[1, 2]"), ["config.json", "JSON list"]),
    "config deep": (content("config.json", b"[" * 100_000), ["config.json", "not readable"]),
    "config huge": (huge, ["config.json", "67,108,865 bytes", "too large"]),
    "config of many digits": (
        content("config.json", b'{"vocab_size": ' + b"9" * 5000 + b"}"), ["config.json"]
    ),
    "gpt2": (
        settings(model_type="gpt2", architectures=["GPT2LMHeadModel"]), ["'gpt2'", "known: albert"]
    ),
    "no model type": (settings(model_type=None), ["model_type None"]),
    "model type a list": (settings(model_type=["albert"]), ["model_type", "['albert']"]),
    "a causal model": (
        settings(architectures=["AlbertForCausalLM"]), ["'AlbertForCausalLM'", "AlbertForMaskedLM"]
    ),
    "architectures a number": (settings(architectures=5), ["architectures", "5"]),
    "architectures a table": (settings(architectures={"a": 1}), ["architectures"]),
    "a decoder": (settings(is_decoder=True), ["is_decoder = True"]),
    "relative positions": (
        settings(position_embedding_type="relative_key"),
        ["position_embedding_type", "relative_key"],
    ),
    "unknown activation": (settings(hidden_act="swish"), ["hidden_act", "'swish'", "gelu_new"]),
    "activation a list": (settings(hidden_act=["gelu"]), ["hidden_act", "['gelu']"]),
    "size a word": (settings(hidden_size="wide"), ["hidden_size = 'wide'"]),
    "heads that do not divide": (
        settings(num_attention_heads=5), ["hidden_size 32", "num_attention_heads 5"]
    ),
    "no layers": (settings(num_hidden_layers=0), ["num_hidden_layers = 0"]),
    "labels a number": (settings(id2label=5), ["id2label"]),
    "labels without numbers": (settings(id2label={"a": "x"}), ["id2label", "'a'"]),
    "label count a word": (settings(num_labels="many"), ["num_labels", "'many'"]),
    "our key a number": (settings(litebert=5), ["litebert", "5"]),
    "our model a number": (settings(litebert={"model": 5}), ["litebert", "5"]),
    "our labels a number": (settings(litebert={"labels": 5}), ["litebert", "5"]),
    "our format from the future": (settings(litebert={"format": 99}), ["format 99", "newer"]),
    "our model with an unknown key": (
        settings(litebert={"model": {"sharng": "all"}}), ["'sharng'", "did you mean 'sharing'?"]
    ),
    "smaller vocabulary": (settings(vocab_size=98), ["(99, 16)", "(98, 16)", "vocab_size"]),
    "larger vocabulary": (settings(vocab_size=30000), ["(99, 16)", "(30000, 16)", "vocab_size"]),
    "vocabulary beyond memory": (settings(vocab_size=10**18), ["vocab_size", str(10**18)]),
    "other width": (settings(hidden_size=64), ["(64, "]),
    "no weights": (gone("model.safetensors"), ["model.safetensors: no such file"]),
    "weights empty": (cut(0), ["model.safetensors: not a whole"]),
    "weights of 4 bytes": (cut(4), ["model.safetensors: not a whole"]),
    "weights of 100 bytes": (cut(100), ["model.safetensors: not a whole"]),
    "half the weights": (cut(0.5), ["model.safetensors: not a whole"]),
    "weights but for the end": (cut(0.9999), ["model.safetensors: not a whole"]),
    "a pickle in disguise": (
        content("model.safetensors", pickle.dumps({"a": [1.0] * 100})),
        ["model.safetensors", "convert"],
    ),
    "a pickle of torch in disguise": (
        pickle_only("model.safetensors"), ["model.safetensors", "convert"]
    ),
    "a pickle": (
        pickle_only("pytorch_model.bin"), ["pytorch_model.bin", "refused", "save_pretrained"]
    ),
    "a pickle in parts": (
        pickle_only("pytorch_model-00001-of-00002.bin"),
        ["pytorch_model-00001-of-00002.bin", "refused", "save_pretrained"],
    ),
    "a tensor missing": (
        tensors(lambda t: {n: x for n, x in t.items() if n != KEY}), [KEY, "is missing"]
    ),
    "a bias missing": (
        tensors(lambda t: {n: x for n, x in t.items() if n != "albert.pooler.bias"}),
        ["albert.pooler.bias", "is missing"],
    ),
    "a tensor too many": (
        tensors(lambda t: t | {"albert.extra.weight": torch.ones(2)}),
        ["'albert.extra.weight'", "no place"],
    ),
    "no known tensor": (tensors(lambda t: {"a": torch.ones(1)}), ["is missing"]),
    "a key of other shape": (tensors(lambda t: t | {KEY: torch.ones(32, 16)}), ["(32, 16)"]),
    "a key without shape": (tensors(lambda t: t | {KEY: torch.tensor(1.0)}), ["key"]),
    "a bias of other shape": (
        tensors(lambda t: t | {"albert.pooler.bias": torch.ones(31)}), ["pooler", "(31,)", "(32,)"]
    ),
    "integers for weights": (
        tensors(lambda t: t | {"albert.pooler.bias": torch.ones(32, dtype=torch.int64)}),
        ["pooler.bias", "int64"],
    ),
    "complex weights": (
        tensors(lambda t: t | {"albert.pooler.bias": torch.ones(32, dtype=torch.complex64)}),
        ["pooler.bias", "complex64"],
    ),
    "an untied decoder": (
        tensors(lambda t: t | {"predictions.decoder.weight": torch.ones(99, 16)}),
        ["'predictions.decoder.weight'", "decoder of its own"],
    ),
    "an untied bias": (
        tensors(lambda t: t | {"predictions.decoder.bias": torch.ones(99)}),
        ["'predictions.decoder.bias'", "decoder of its own"],
    ),
    "an index to outside": (
        index({KEY: "../evil.safetensors"}), ["index.json", "outside", "../evil.safetensors"]
    ),
    "an index to above": (index({KEY: ".."}), ["index.json", "outside"]),
    "an index of lists": (index({KEY: ["a"]}), ["index.json"]),
    "an index that is a list": (index([KEY]), ["index.json"]),
    "an index of nothing": (index(None), ["index.json"]),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_refused_and_nothing_written(
    damage: str, source: Path, refused: Refused, tmp_path: Path
) -> None:
    change, words = DAMAGES[damage]
    change(source)
    before = sorted(path.name for path in tmp_path.iterdir())
    sentence = refused("import", source, tmp_path / "out")
    for word in words:
        assert word in sentence
    assert str(source) in sentence
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_folder_is_good_before_it_is_damaged(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, "import", source, tmp_path / "out") == 0


def test_an_absolute_path_in_an_index_is_refused(
    source: Path, refused: Refused, tmp_path: Path
) -> None:
    index({KEY: str(tmp_path / "evil.safetensors")})(source)
    assert "outside" in refused("import", source, tmp_path / "out")


def test_a_square_map_without_its_bias_is_refused(refused: Refused, tmp_path: Path) -> None:
    shape = {"embedding_size": 12, "hidden_size": 12, "num_attention_heads": 2, "vocab_size": 9}
    encoder = litebert.EncoderConfig(**shape, intermediate_size=8)  # type: ignore[arg-type]
    litebert.Model.create(encoder).save(tmp_path / "source")
    (tmp_path / "source" / "manifest.json").unlink()
    name = "encoder.embedding_hidden_mapping_in.bias"
    tensors(lambda t: {n: x for n, x in t.items() if n != name})(tmp_path / "source")
    assert name in refused("import", tmp_path / "source", tmp_path / "out")


@pytest.mark.parametrize("form", ["huggingface", "tensorflow"])
@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("model.safetensors", "flip", ["does not match its checksum"]),
        ("model.safetensors", "cut", ["manifest.json says", "truncated"]),
        ("config.json", "flip", ["does not match its checksum"]),
        ("model.safetensors", "remove", ["missing"]),
    ],
)
def test_the_manifest_finds_damage(
    name: str, change: str, words: list[str], form: str, refused: Refused, tmp_path: Path,
    source: Path,
) -> None:  # fmt: skip
    ours, out = tmp_path / "ours", tmp_path / "out"
    litebert.import_model(source, ours)
    data = bytearray((ours / name).read_bytes())
    if change == "flip":
        data[-3] ^= 1
    (ours / name).write_bytes(data[:-1] if change == "cut" else data)
    if change == "remove":
        (ours / name).unlink()
    sentence = refused("export", ours, out, "--format", form)
    for word in [str(ours / name), *words]:
        assert word in sentence
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours", "source"]


def test_shared_layers_that_differ_are_refused(refused: Refused, tmp_path: Path) -> None:
    preset = litebert.load_preset("albert-tiny", ["model.sharing=ffn", SMALL])
    litebert.Model.create(preset.model).save(tmp_path / "source")
    (tmp_path / "source" / "manifest.json").unlink()
    name = "encoder.albert_layer_groups.1.albert_layers.0.ffn.bias"
    tensors(lambda t: t | {name: t[name] + 1})(tmp_path / "source")
    sentence = refused("import", tmp_path / "source", tmp_path / "out")
    assert name in sentence
    assert "differs from its copies" in sentence
    assert not (tmp_path / "out").exists()


def test_a_pickle_handed_in_by_itself_is_refused(
    source: Path, refused: Refused, tmp_path: Path
) -> None:
    pickle_only("pytorch_model.bin")(source)
    sentence = refused("import", source / "pytorch_model.bin", tmp_path / "out")
    assert str(source / "pytorch_model.bin") in sentence
    assert "save_pretrained" in sentence


@pytest.mark.parametrize("command", ["import", "export"])
def test_a_missing_source_is_named(command: str, refused: Refused, tmp_path: Path) -> None:
    sentence = refused(command, tmp_path / "nowhere", tmp_path / "out")
    assert f"{tmp_path / 'nowhere'}: no such" in sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["import"], ["export"], ["export", "--format=tensorflow"]])
@pytest.mark.parametrize("kind", ["folder", "file", "the source"])
def test_a_destination_that_is_there_stays(
    arguments: list[str], kind: str, foreign: Path, refused: Refused, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(foreign / "albert", tmp_path / "source"))
    out = source if kind == "the source" else tmp_path / "out"
    if kind == "folder":
        out.mkdir()
        (out / "thesis.txt").write_text("years of work")
    elif kind == "file":
        out.write_text("years of work")
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    assert f"{out}: already exists" in refused(arguments[0], source, out, *arguments[1:])
    after = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    assert after == before


@pytest.mark.parametrize("arguments", [["import"], ["export"], ["export", "--format=tensorflow"]])
def test_a_destination_that_cannot_be_written_is_named(
    arguments: list[str], source: Path, refused: Refused, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file" / "out", tmp_path / ("n" * 300)):
        sentence = refused(arguments[0], source, out, *arguments[1:])
        assert str(out) in sentence
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "source"]
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
    ids=["of Python", "of safetensors"],
)
def test_a_full_disk_is_one_sentence(
    error: Exception, source: Path, refused: Refused, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("litebert.model.folder.save_file", full)
    sentence = refused("import", source, tmp_path / "out")
    assert str(tmp_path / "out") in sentence
    assert "No space left on device" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_google_has_no_roberta(foreign: Path, refused: Refused, tmp_path: Path) -> None:
    sentence = refused("export", foreign / "roberta", tmp_path / "out", "--format", "tensorflow")
    for word in (str(foreign / "roberta"), "roberta;", "albert and bert", "--format huggingface"):
        assert word in sentence
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused(source: Path, refused: Refused, tmp_path: Path) -> None:
    sentence = refused("export", source, tmp_path / "out", "--format", "gguf")
    assert "'gguf'" in sentence
    assert "huggingface or onnx or tensorflow" in sentence


# ---------------------------------------------------------------------------- in Python


@pytest.mark.parametrize("sharing", ["all", "none"])
@pytest.mark.parametrize("depth", [0, -1, [1, 0], [0, 0]])
def test_depth_zero_is_refused(sharing: str, depth: Any) -> None:
    preset = litebert.load_preset("albert-tiny", [f"model.sharing={sharing}", SMALL])
    model = litebert.Model.create(preset.model)
    with pytest.raises(SettingsError, match=r"depth (0|-1): .* at least one layer"):
        model(torch.ones(2, 3, dtype=torch.long), depth=depth)


def test_more_depth_than_layers_needs_shared_ones() -> None:
    preset = litebert.load_preset("albert-tiny", ["model.sharing=attention", SMALL])
    model = litebert.Model.create(preset.model)
    with pytest.raises(SettingsError, match="depth 5: this encoder has 2 layers"):
        model(torch.ones(1, 3, dtype=torch.long), depth=5)


@pytest.mark.parametrize("packed", [False, True])
def test_a_sequence_too_long_is_refused(packed: bool) -> None:
    few = ["model.max_position_embeddings=8", "data.max_length=8", SMALL]
    model = litebert.Model.create(litebert.load_preset("albert-tiny", few).model)
    ids = torch.ones(9, dtype=torch.long)
    with pytest.raises(SettingsError, match=r"9 tokens is too long.*positions for 8"):
        model(ids, lengths=[9]) if packed else model(ids[None])


def test_an_unknown_head_offers_the_nearest() -> None:
    preset = litebert.load_preset("albert-tiny")
    with pytest.raises(SettingsError, match="unknown head 'clasification'") as caught:
        litebert.Model.create(preset.model, ["clasification"])
    assert "did you mean 'classification'?" in str(caught.value)


def test_every_refusal_can_be_caught_at_the_root(source: Path) -> None:
    gone("config.json")(source)
    with pytest.raises(litebert.LitebertError, match=r"config\.json"):
        litebert.load(source)
    content("config.json", b"[]")(source)
    with pytest.raises(FormatError, match="JSON list"):
        litebert.load(source)


# ---------------------------------------------------------------------------- as a real process


def test_as_a_process(source: Path, tmp_path: Path) -> None:
    cut(0.5)(source)
    for arguments, word in (
        (["plan", "albert-bse"], "'albert-base'"),
        (["import", source, tmp_path / "out"], "model.safetensors"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "litebert", *map(str, arguments)], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith("litebert: ")
        assert done.stderr.count("\n") == 1
        assert word in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
