"""Training asked for in a way that cannot work: one sentence, exit code 2, and nothing lost."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import litebert
from litebert.base.files import lock_folder
from litebert.configs.load import load_preset
from litebert.corpus.store import Store
from litebert.planning.memory import peak_memory
from litebert.train import build as building
from litebert.train.metrics import read_metrics
from tests.corpus.stores import (
    make_documents,
    make_store,
    write_bytes,
    write_pieces,
    write_wordpiece,
)
from tests.parity.families import build, config
from tests.test_bad_input import Refused, refused
from tests.test_cli import run

__all__ = ["refused"]

Trained = Callable[..., tuple[str, str]]

SMALL = [
    "model.hidden_size=16", "model.num_hidden_layers=1", "model.num_attention_heads=2",
    "model.intermediate_size=20", "data.max_length=32", "data.batch_size=4",
    "evaluation.sequences=4", "precision=fp32", "budget=2steps",
]  # fmt: skip
ALBERT = ["albert-tiny", *SMALL, "model.embedding_size=8", "initialization=truncated_normal"]
ELECTRA = [
    "electra-small", *SMALL, "model.embedding_size=8", "generator.hidden_size=4",
    "generator.intermediate_size=8",
]  # fmt: skip
AS_FOUND = [one for one in ALBERT if not one.startswith("model.")]  # the shape of --from's model
ROBERTA = ["roberta-base", *SMALL, "model.embedding_size=16"]
SPANBERT = ["spanbert-base", *SMALL, "model.embedding_size=16"]


def arguments(preset: list[str], corpus: object, out: object, *more: object) -> list[object]:
    """`pretrain` with a small preset; further settings are written key=value."""
    name, *overrides = preset
    overrides += [str(one) for one in more if re.match(r"[a-z_.]+=", str(one))]
    rest = [one for one in more if not re.match(r"[a-z_.]+=", str(one))]
    chosen = [part for one in overrides for part in ("--set", one)]
    return ["pretrain", name, "--corpus", corpus, "--out", out, *chosen, *rest]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Trained:
    """Run a command that must succeed; what it prints on either stream."""

    def call(*words: object) -> tuple[str, str]:
        code = run(monkeypatch, *words)
        out, err = capsys.readouterr()
        assert code == 0, err
        assert "Traceback" not in err
        return out, err

    return call


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that says this and that and then fails; its last sentence."""

    def call(*words: object) -> str:
        code = run(monkeypatch, *words)
        out, err = capsys.readouterr()
        assert code == 2
        assert out == ""
        assert "Traceback" not in err
        assert "Warning" not in err
        assert err.count("litebert: ") == 1
        sentence = err.splitlines()[-1]
        assert sentence.startswith("litebert: ")
        return sentence

    return call


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    """One text in three kinds of pieces, with and without held-out documents."""
    folder, documents = tmp_path_factory.mktemp("stores"), make_documents(0, 40, (1, 8), (1, 8))
    kinds = {"pieces": write_pieces, "wordpiece": write_wordpiece, "bytes": write_bytes}
    made = {}
    for kind, write in kinds.items():
        tokenizer = write(folder / kind / "tokenizer")
        made[kind] = make_store(folder / kind / "store", documents, tokenizer, held_out=0.2)
    tokenizer = folder / "pieces" / "tokenizer"
    made["whole"] = make_store(folder / "pieces" / "whole", documents, tokenizer)
    made["empty"] = make_store(folder / "pieces" / "empty", documents, tokenizer, held_out=0.9999)
    return made


@pytest.fixture(scope="module")
def corpus(stores: dict[str, Store]) -> Path:
    return stores["pieces"].folders[0]


@pytest.fixture(scope="module")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; tests that change it work on a copy."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    name, *overrides = ALBERT
    assert litebert.pretrain(name, corpus, folder, overrides=overrides).finished
    return folder


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}  # fmt: skip


def assert_all_in(words: list[str], sentence: str) -> None:
    for word in words:
        assert word in sentence, sentence


# ---------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("preset", "more", "words"),
    [
        (["albert-tny"], [], ["'albert-tny'", "did you mean 'albert-tiny'?"]),
        (["gone.toml"], [], ["gone.toml", "no such preset file"]),
        (
            ALBERT,
            ["optimizer.learning_rat=1"],
            ["'optimizer.learning_rat'", "did you mean 'optimizer.learning_rate'?"],
        ),
        (ALBERT, ["data.lenght=64"], ["'data.lenght'", "did you mean 'data.max_length'?"]),
        (ALBERT, ["data.max_length=7"], ["data.max_length = 7"]),
        (ALBERT, ["optimizer.learning_rate=fast"], ["optimizer.learning_rate = 'fast'"]),
        (ALBERT, ["optimizer.learning_rate=nan"], ["optimizer.learning_rate = nan"]),
        (ALBERT, ["optimizer.name=sgd"], ["optimizer.name = 'sgd'", "'lamb'"]),
        (ALBERT, ["schedule.warmup=1"], ["schedule.warmup = 1"]),
        (ALBERT, ["data.input_format=alpert"], ["'alpert'", "did you mean 'albert'?"]),
        (ALBERT, ["--budget", "5 parsecs"], ["'5 parsecs'", "200Mtok"]),
        (ALBERT, ["--budget", "0steps"], ["'0steps'", "125000steps"]),
        (ALBERT, ["--budget", "-3h"], ["'-3h'", "2h"]),
        (ALBERT, ["--budget", "soon"], ["'soon'", "30m"]),
        (ALBERT, ["objectives=[]"], ["objectives is empty"]),
        (ALBERT, ['objectives=["masked_lm","masked_lm"]'], ["'masked_lm' more than once"]),
        (ALBERT, ['objectives=["masked_ml"]'], ["'masked_ml'", "did you mean 'masked_lm'?"]),
        (ALBERT, ["data.input_format=full-sentences"], ["'full-sentences'", "sentence_order"]),
        (ALBERT, ["data.input_format=spanbert"], ["'spanbert'", "sentence_order", "'albert'"]),
        (ALBERT, ["data.input_format=bert"], ["'bert'", "sentence_order", "next_sentence"]),
        (ALBERT, ["data.max_length=513"], ["data.max_length 513", "512 positions"]),
        (ROBERTA, ["data.max_length=513"], ["data.max_length 513", "512 positions"]),
        (ALBERT, ["stages=[{fraction=0.5}]"], ["stages", "0.5", "expected 1"]),
        (ALBERT, ["stages=[{fraction=0.9},{fraction=0.2}]"], ["stages", "1.1", "expected 1"]),
        (ALBERT, ["stages=[{fraction=1.0,max_length=600}]"], ["600", "512 positions"]),
        (
            ROBERTA,
            ["model.num_hidden_layers=2", "stages=[{fraction=1.0,depth=5}]"],
            ["depth 5", "all shared"],
        ),
        (ALBERT, ['objectives=["replaced_token"]'], ["replaced_token", "[generator]"]),
        (ELECTRA, ['objectives=["replaced_token","masked_lm"]'], ["replaced_token", "alone"]),
        (ELECTRA, ['objectives=["replaced_token","sentence_order"]'], ["replaced_token", "alone"]),
        (ELECTRA, ["masking.unit=word"], ["with_replacement", "'token'"]),
        (ALBERT, ["masking.unit=word"], ["subsampling", "'token'"]),
        (ALBERT, ["masking.mask_fraction=0.95"], ["mask_fraction 0.95", "random_fraction 0.1"]),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, list) else None,
)
def test_bad_settings(
    preset: list[str], more: list[str], words: list[str], refused: Refused, corpus: Path,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    sentence = refused(*arguments(preset, corpus, tmp_path / "run", *more))
    assert_all_in(words, sentence)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("betas", ["[0.9,1.0]", "[1.5,0.999]", "[-0.1,0.999]", "[0.9]"])
@pytest.mark.parametrize("preset", [ALBERT, ELECTRA], ids=["torch", "google"])
def test_impossible_betas(
    betas: str, preset: list[str], refused: Refused, stores: dict[str, Store], tmp_path: Path
) -> None:
    folder = stores["pieces" if preset is ALBERT else "wordpiece"].folders[0]
    more = f"optimizer.betas={betas}"
    assert_all_in(["betas"], refused(*arguments(preset, folder, tmp_path / "run", more)))


def test_a_budget_spent_before_the_first_step(
    refused: Refused, corpus: Path, tmp_path: Path
) -> None:
    """Refused, and the folder is free for the next try."""
    out = tmp_path / "run"
    sentence = refused(*arguments(ALBERT, corpus, out, "--budget", "0.01s"))
    assert_all_in(["too short", "starting"], sentence)
    name, *overrides = ALBERT
    assert litebert.pretrain(name, corpus, out, overrides=overrides).finished


def test_a_word_said_once_in_a_bad_budget(refused: Refused, corpus: Path, tmp_path: Path) -> None:
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run", "--budget", "soon"))
    assert sentence.count("budget") == 1, sentence


@pytest.mark.parametrize("kind", ["wordpiece", "pieces"])
def test_segments_that_the_model_has_no_rows_for(
    kind: str, refused: Refused, stores: dict[str, Store], tmp_path: Path
) -> None:
    """RoBERTa has one row of segments; pairs of other tokenizers' pieces need two."""
    folder = stores[kind].folders[0]
    more = ["data.input_format=segment-pair", 'objectives=["masked_lm","next_sentence"]']
    sentence = refused(*arguments(ROBERTA, folder, tmp_path / "run", *more))
    assert_all_in(["type_vocab_size"], sentence)


# ---------------------------------------------------------------------------- corpus


def test_no_such_corpus(refused: Refused, tmp_path: Path) -> None:
    sentence = refused(*arguments(ALBERT, tmp_path / "gone", tmp_path / "run"))
    assert_all_in([str(tmp_path / "gone"), "litebert prepare"], sentence)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_no_store(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("One sentence. Another.")
    sentence = refused(*arguments(ALBERT, tmp_path / "texts", tmp_path / "run"))
    assert_all_in([str(tmp_path / "texts"), "store"], sentence)
    assert not (tmp_path / "run").exists()


def test_a_file_as_corpus(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One sentence. Another.")
    sentence = refused(*arguments(ALBERT, tmp_path / "a.txt", tmp_path / "run"))
    assert_all_in([str(tmp_path / "a.txt"), "litebert prepare"], sentence)


def test_a_store_without_held_out_text_trains_and_says_so(
    trained: Trained, stores: dict[str, Store], tmp_path: Path
) -> None:
    out, err = trained(*arguments(ALBERT, stores["whole"].folders[0], tmp_path / "run"))
    assert "2 steps" in out
    assert "without held-out text" in err
    evaluations = [one for one in read_metrics(tmp_path / "run") if one.kind == "evaluation"]
    assert evaluations
    assert not any(one.loss for one in evaluations)


def test_held_out_text_that_no_document_fell_into_is_told_of(
    trained: Trained, tmp_path: Path
) -> None:
    """A hundredth of five documents is none: nothing can be measured, as without held-out text."""
    documents = make_documents(0, 5, (4, 8), (4, 8))
    store = make_store(tmp_path / "store", documents, write_pieces(tmp_path / "tokenizer"),
                       held_out=0.0001)  # fmt: skip
    out, err = trained(*arguments(ALBERT, store.folders[0], tmp_path / "run"))
    assert "2 steps" in out
    assert "held-out" in err


@pytest.mark.parametrize("initialization", ["truncated_normal", "corpus"])
@pytest.mark.parametrize("batch_by", ["sequences", "tokens"])
def test_nothing_left_to_train_on(
    batch_by: str, initialization: str, stopped: Refused, stores: dict[str, Store], tmp_path: Path
) -> None:
    folder = stores["empty"].folders[0]
    more = [f"data.batch_by={batch_by}", f"initialization={initialization}"]
    sentence = stopped(*arguments(ALBERT, folder, tmp_path / "run", *more))
    assert str(folder) in sentence
    assert "train" in sentence


def test_nothing_left_to_take_random_tokens_from(
    stopped: Refused, stores: dict[str, Store], tmp_path: Path
) -> None:
    folder = stores["empty"].folders[0]
    sentence = stopped(
        *arguments(SPANBERT, folder, tmp_path / "run", "masking.random_special_tokens=false")
    )
    assert str(folder) in sentence


# ---------------------------------------------------------------------------- memory


def need(store: Store, sequences: int, *more: str) -> int:
    """Bytes that so many sequences of the small preset are said to need."""
    name, *overrides = ALBERT
    preset = building.fit_to_corpus(load_preset(name, [*overrides, *more]), store)
    return peak_memory(preset, sequences, 32, "fp32", False)["total"]


def test_a_batch_that_cannot_fit(
    refused: Refused, stores: dict[str, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores["pieces"]
    free = need(store, 1000)
    monkeypatch.setattr(building, "memory_free", lambda device: free)
    huge = ["data.batch_size=200000", "data.micro_batch_tokens=4000000"]
    sentence = refused(*arguments(ALBERT, store.folders[0], tmp_path / "run", *huge))
    assert_all_in(
        ["4,000,000 tokens", f"{free / 1e9:.1f} GB are free", "data.micro_batch_tokens="], sentence
    )
    assert f"about {need(store, 4_000_000 // 32) / 1e9:.1f} GB" in sentence
    advised = re.search(r"data\.micro_batch_tokens=(\d+)", sentence)
    assert advised, sentence
    assert need(store, int(advised[1]) // 32) <= free
    assert need(store, 2 * int(advised[1]) // 32) > free


def test_advice_that_is_followed_works(
    refused: Refused, trained: Trained, stores: dict[str, Store], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The same command with the number it names, so in the same folder too."""
    store = stores["pieces"]
    free = (need(store, 16) + need(store, 32)) // 2
    monkeypatch.setattr(building, "memory_free", lambda device: free)
    words = arguments(ALBERT, store.folders[0], tmp_path / "run", "data.batch_size=64")
    sentence = refused(*words)
    advised = re.search(r"--set (data\.micro_batch_tokens=\d+)", sentence)
    assert advised, sentence
    out, _ = trained(*words, "--set", advised[1])
    assert "2 steps" in out


def test_no_batch_can_fit(
    refused: Refused, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "memory_free", lambda device: 1000)
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run"))
    assert_all_in(["GB", "smaller preset"], sentence)
    assert "data.micro_batch_tokens=" not in sentence


# ---------------------------------------------------------------------------- where to start


def own_model(store: Store, folder: Path, **changes: Any) -> Path:
    """A model folder of ours, with its tokenizer."""
    tokenizer = store.tokenizer
    size: dict[str, Any] = {
        "vocab_size": tokenizer.vocab_size, "embedding_size": 8, "hidden_size": 16,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20,
        "max_position_embeddings": 64,
    }  # fmt: skip
    shape = litebert.EncoderConfig(**{**size, **changes})
    model = litebert.Model.create(shape, ("masked_lm", "sentence_pair"), seed=1)
    model.save(folder, tokenizer=tokenizer)
    return folder


def test_no_such_start(refused: Refused, corpus: Path, tmp_path: Path) -> None:
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run", "--from", tmp_path / "gone"))
    assert_all_in([str(tmp_path / "gone")], sentence)


def test_a_start_with_another_tokenizer(
    refused: Refused, stores: dict[str, Store], corpus: Path, tmp_path: Path
) -> None:
    model = own_model(stores["wordpiece"], tmp_path / "model")
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run", "--from", model))
    assert_all_in([str(corpus), str(model), "another tokenizer", "litebert prepare"], sentence)


def test_a_start_with_fewer_tokens(stopped: Refused, corpus: Path, tmp_path: Path) -> None:
    build("AlbertModel", config("albert")).save_pretrained(tmp_path / "model")
    sentence = stopped(*arguments(ALBERT, corpus, tmp_path / "run", "--from", tmp_path / "model"))
    assert_all_in(["vocab_size 6245", "99", "litebert prepare"], sentence)


def test_a_start_whose_positions_are_too_few(
    refused: Refused, stores: dict[str, Store], corpus: Path, tmp_path: Path
) -> None:
    model = own_model(stores["pieces"], tmp_path / "model", max_position_embeddings=16)
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run", "--from", model))
    assert_all_in(["32", "16 positions"], sentence)


def test_an_unfinished_run_as_start(refused: Refused, corpus: Path, tmp_path: Path) -> None:
    """Its checkpoints are not a model folder; the sentence names the run."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "run.json").write_text("{}")
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run", "--from", tmp_path / "first"))
    assert_all_in([str(tmp_path / "first")], sentence)


def large_albert(vocabulary: int) -> Any:
    shape = config(
        "albert", vocab_size=vocabulary, max_position_embeddings=64, num_hidden_layers=1,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0,
    )  # fmt: skip
    return build("AlbertModel", shape)


STILL = ["optimizer.learning_rate=1e-12", "optimizer.weight_decay=0"]


def test_continuing_from_a_hugging_face_model_without_heads(
    trained: Trained, stores: dict[str, Store], corpus: Path, tmp_path: Path
) -> None:
    theirs = large_albert(stores["pieces"].info.vocab_size)
    theirs.save_pretrained(tmp_path / "albert")
    words = arguments(AS_FOUND, corpus, tmp_path / "run", *STILL, "--from", tmp_path / "albert")
    _, err = trained(*words)
    said = " ".join(err.split())
    assert_all_in(["new", "heads.masked_lm", "heads.sentence_pair", "tokenizer"], said)
    ours = litebert.load(tmp_path / "run" / "model")
    before = litebert.load(tmp_path / "albert")
    for name, tensor in before.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, rtol=0, atol=1e-6)
    opened = transformers.AlbertForPreTraining.from_pretrained(tmp_path / "run" / "model")
    assert opened.config.hidden_size == theirs.config.hidden_size
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert settings["model"]["hidden_size"] == theirs.config.hidden_size


def test_settings_of_a_model_that_is_there(
    stopped: Refused, trained: Trained, finished: Path, corpus: Path, tmp_path: Path
) -> None:
    """Its shape cannot be changed; what has no tensors, such as dropout or a shared depth, can."""
    start = ["--from", finished]
    words = arguments(AS_FOUND, corpus, tmp_path / "run", "model.hidden_size=256", *start)
    assert_all_in(["does not fit", "(", "wanted"], stopped(*words))
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    free = ["model.hidden_dropout_prob=0.2", "model.num_hidden_layers=3"]
    trained(*arguments(AS_FOUND, corpus, tmp_path / "run", *free, *start))
    model = litebert.load(tmp_path / "run" / "model")
    assert (model.config.hidden_dropout_prob, model.config.num_hidden_layers) == (0.2, 3)
    assert model.config.hidden_size == 16


def test_continuing_from_a_run_of_ours(
    trained: Trained, finished: Path, corpus: Path, tmp_path: Path
) -> None:
    before = snapshot(finished)
    words = arguments(ALBERT, corpus, tmp_path / "run", *STILL, "--from", finished)
    _, err = trained(*words)
    assert "new, as" not in err
    one = litebert.load(finished / "model").state_dict()
    two = litebert.load(tmp_path / "run" / "model").state_dict()
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=0, atol=1e-6)
    assert snapshot(finished) == before
    assert json.loads((tmp_path / "run" / "run.json").read_text())["from"] == str(finished)


@pytest.mark.parametrize("part", ["", "model"])
def test_continuing_from_an_electra_run(
    part: str, trained: Trained, stores: dict[str, Store], tmp_path: Path
) -> None:
    """With its generator; from the discriminator alone a new generator is made and said."""
    folder = stores["wordpiece"].folders[0]
    trained(*arguments(ELECTRA, folder, tmp_path / "first"))
    start = tmp_path / "first" / part
    words = arguments(ELECTRA, folder, tmp_path / "second", *STILL, "--from", start)
    _, err = trained(*words)
    said = re.search(r"new.*generator", err) is not None
    assert said == bool(part)
    for name in ("model", "generator"):
        one = litebert.load(tmp_path / "first" / name).state_dict()
        two = litebert.load(tmp_path / "second" / name).state_dict()
        same = all(torch.allclose(one[key], two[key], rtol=0, atol=1e-6) for key in one)
        assert same or (part and name == "generator")


# ---------------------------------------------------------------------------- where to write


def test_a_folder_that_is_no_run(refused: Refused, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("Years of work.")
    before = snapshot(tmp_path / "thesis")
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "thesis"))
    assert_all_in([str(tmp_path / "thesis"), "already exists", "another folder"], sentence)
    assert snapshot(tmp_path / "thesis") == before, "something was left in a foreign folder"


def test_a_foreign_file_called_lock_keeps_its_content(
    refused: Refused, corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "door").mkdir()
    (tmp_path / "door" / "lock").write_text("The combination is 1234.")
    (tmp_path / "door" / "key").write_text("Under the mat.")
    refused(*arguments(ALBERT, corpus, tmp_path / "door"))
    assert (tmp_path / "door" / "lock").read_text() == "The combination is 1234."


def test_a_folder_whose_lock_cannot_be_written(
    refused: Refused, corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "run" / "lock").mkdir(parents=True)
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run"))
    assert_all_in([str(tmp_path / "run")], sentence)


def test_a_file_in_the_way(refused: Refused, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("Not a folder.")
    for out in (tmp_path / "run", tmp_path / "run" / "below"):
        assert_all_in([str(out), "cannot be written"], refused(*arguments(ALBERT, corpus, out)))
    assert (tmp_path / "run").read_text() == "Not a folder."


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["data.batch_size=8"], ["data.batch_size", "4 there, 8 wanted"]),
        (["seed=5"], ["seed", "0 there, 5 wanted"]),
        (["--budget", "9steps"], ["budget", "2steps there, 9steps wanted"]),
        (["model.hidden_size=32"], ["model.hidden_size", "16 there, 32 wanted"]),
    ],
)
def test_a_run_of_other_settings(
    more: list[str], words: list[str], refused: Refused, finished: Path, corpus: Path
) -> None:
    before = snapshot(finished)
    sentence = refused(*arguments(ALBERT, corpus, finished, *more))
    assert_all_in([str(finished), "other settings", *words], sentence)
    assert snapshot(finished) == before


def test_a_run_of_another_corpus(
    refused: Refused, finished: Path, stores: dict[str, Store]
) -> None:
    sentence = refused(*arguments(ALBERT, stores["whole"].folders[0], finished))
    assert_all_in([str(finished), "corpus"], sentence)


def test_a_finished_run_is_left_as_it_is(trained: Trained, finished: Path, corpus: Path) -> None:
    before = snapshot(finished)
    out, _ = trained(*arguments(ALBERT, corpus, finished))
    assert "2 steps" in out
    assert snapshot(finished) == before


def test_settings_that_may_change(
    trained: Trained, finished: Path, corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    trained(*arguments(ALBERT, corpus, tmp_path / "run", "log.every=3", "checkpoint.keep=1"))


def test_a_damaged_description(
    refused: Refused, finished: Path, corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    for text in ("", "{", "[]", "null", "{}", '{"settings": 3}'):
        (tmp_path / "run" / "run.json").write_text(text)
        assert_all_in(
            [str(tmp_path / "run")], refused(*arguments(ALBERT, corpus, tmp_path / "run"))
        )


def test_a_run_that_is_under_way(
    refused: Refused, finished: Path, corpus: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    description = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**description, "finished": False}))
    before = snapshot(tmp_path / "run")
    with lock_folder(tmp_path / "run", "litebert pretrain"):
        sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run"))
    assert_all_in([str(tmp_path / "run"), "another", "litebert pretrain"], sentence)
    assert snapshot(tmp_path / "run") == before
