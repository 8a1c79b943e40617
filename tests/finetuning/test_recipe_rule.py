"""The rule for recipes: facts in, settings and reasons out; and what is chosen for folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from litebert.finetuning.choose import choose_recipe, data_facts, start_facts
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.recipe_rule import (
    ENOUGH_STEPS,
    EPOCHS,
    FORMS,
    DataFacts,
    StartFacts,
    choose_by_rule,
)
from litebert.inference.model_folder import open_tokenizer
from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.tasks.data import TaskData
from litebert.tasks.task import Form
from tests.tasks.small import TASKS, write_start

MINI = StartFacts("small", 256, 512)
SENTENCE = StartFacts("sentence", 384, 512)
BASE = StartFacts("published", 768, 512)
TEXTS = DataFacts("text", train=180, dev=20, numeric=False, length=57)


def chosen(data: DataFacts, start: StartFacts) -> Recipe:
    return Recipe.build(choose_by_rule(data, start).settings, "test")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", [MINI, SENTENCE, BASE])
@pytest.mark.parametrize("train", [1, 90, 900, 5_000, 400_000])
def test_few_examples_get_hundreds_of_steps(form: Form, start: StartFacts, train: int) -> None:
    recipe = chosen(replace(TEXTS, form=form, train=train), start)
    steps = recipe.steps_of(-(-train // recipe.batch_size))
    assert recipe.epochs is not None
    assert EPOCHS[0] <= recipe.epochs <= EPOCHS[1]
    assert steps > 0.9 * ENOUGH_STEPS or recipe.epochs == EPOCHS[1]
    assert recipe.epochs == EPOCHS[0] or steps < 1.2 * ENOUGH_STEPS


@pytest.mark.parametrize(
    ("form", "start", "pooling", "bi_encoder"),
    [
        ("text", MINI, "mean", False),
        ("text", SENTENCE, "mean", False),
        ("text", BASE, "first", False),
        ("pair", MINI, "mean", True),
        ("pair", BASE, "first", False),
    ],
)
def test_poolings(form: Form, start: StartFacts, pooling: str, bi_encoder: bool) -> None:
    recipe = chosen(replace(TEXTS, form=form), start)
    assert (recipe.pooling, recipe.bi_encoder) == (pooling, bi_encoder)


def test_how_alike_two_texts_are_is_asked_of_a_sentence_encoder_apart() -> None:
    numbers = replace(TEXTS, form="pair", numeric=True)
    assert chosen(numbers, SENTENCE).bi_encoder
    assert not chosen(replace(numbers, numeric=False), SENTENCE).bi_encoder
    assert not chosen(numbers, BASE).bi_encoder


def test_sequences_are_held_whole_as_far_as_there_are_positions() -> None:
    passages = DataFacts("passage", 900, 100, numeric=False, length=230)
    assert chosen(passages, SENTENCE).max_length == 256
    assert chosen(passages, SENTENCE).attention_dropout == 0.0
    assert chosen(TEXTS, SENTENCE).attention_dropout is None  # short: as the model says
    assert chosen(replace(passages, length=4_000), SENTENCE).max_length == 384
    assert chosen(passages, replace(SENTENCE, positions=128)).max_length == 128
    assert chosen(replace(passages, form="options", length=500), MINI).max_length == 512
    for length in (1, 64, 65, 200):
        assert chosen(replace(TEXTS, length=length), MINI).max_length >= length


def test_a_small_dev_set_does_not_choose() -> None:
    assert chosen(replace(TEXTS, dev=199), MINI).keep == "last"
    assert chosen(replace(TEXTS, dev=200), MINI).keep == "best"


def test_what_is_decided_in_part_keeps_its_reason() -> None:
    few = replace(TEXTS, train=60, of_a_label=20.0, dev=20)
    said = choose_by_rule(few, SENTENCE, None, {"learning_rate", "keep"}).reasons
    assert any("contrastive pairs" in reason for reason in said)
    assert not any("last evaluation" in reason for reason in said)
    usual = choose_by_rule(TEXTS, MINI, None, {"batch_size"})
    assert any("epochs" in reason for reason in usual.reasons)


def test_every_choice_has_a_reason() -> None:
    reasons = "\n".join(choose_by_rule(replace(TEXTS, form="pair"), MINI).reasons)
    for word in ("epochs", "learning rate", "bi-encoder", "max_length", "last evaluation"):
        assert word in reasons


def test_larger_encoders_learn_slower() -> None:
    rates = [chosen(TEXTS, start).learning_rate for start in (MINI, SENTENCE, BASE)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[1] > rates[2]


# ------------------------------------------------------------------------------ real folders


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


FORM_OF = {
    "classify": "text", "pair": "pair", "regress-bi-encoder": "pair", "tag": "words",
    "qa": "passage", "choice": "options",
}  # fmt: skip


@pytest.mark.parametrize("name", FORM_OF)
def test_facts_of_every_kind(name: str, start: Path) -> None:
    settings, examples, _ = TASKS[name]
    short = settings.model_copy(update={"max_length": 8})  # the measure takes no notice of it
    data = TaskData(short, examples, {"dev": examples[:3]})
    facts = data_facts(data, open_tokenizer(start))
    assert (facts.form, facts.train, facts.dev) == (FORM_OF[name], len(examples), 3)
    assert facts.length == max(_token_counts(examples, start, name))


def _token_counts(examples: list, start: Path, name: str) -> list[int]:
    """What the longest sequences hold, counted by hand: texts, their specials."""
    tokenizer = open_tokenizer(start)
    match FORM_OF[name]:
        case "text":
            groups = [[one.first] for one in examples]
        case "pair":
            groups = [[one.first, one.second] for one in examples]
        case "words":
            groups = [[" ".join(one.words)] for one in examples]
        case "passage":
            groups = [[one.question, one.passage] for one in examples]
        case _:
            groups = [[e.passage, f"{e.question} {o}"] for e in examples for o in e.options]
    return [sum(len(tokenizer.encode(text)) + 1 for text in group) + 1 for group in groups]


def test_the_folder_says_how_an_encoder_was_trained() -> None:
    def facts(width: int, told: bool, *heads: str) -> str:
        config = EncoderConfig(vocab_size=50, hidden_size=width, num_attention_heads=4)
        model = Model.skeleton(config, heads)
        model.sentence_encoder = SentenceEncoderSettings() if told else None
        return start_facts(model).training

    assert facts(128, True, "masked_lm") == "small"
    assert facts(128, True) == "small"
    assert facts(384, True) == "sentence"
    assert facts(384, True, "masked_lm") == "published"  # ours: a mean that nothing trained
    assert facts(768, False) == "published"


def test_what_the_user_sets_holds_and_the_rest_is_said(start: Path) -> None:
    settings, examples, _ = TASKS["classify"]
    data, said = TaskData(settings, examples, {"dev": examples}), []
    model, tokenizer = Model.load(start), open_tokenizer(start)
    recipe = choose_recipe(
        model, start, data, tokenizer, None, ["epochs=7", "pooling=first"], said.append
    )
    assert (recipe.epochs, recipe.pooling) == (7, "first")
    assert recipe.learning_rate == 2e-3
    assert any("learning rate" in line for line in said)
    named = choose_recipe(model, start, data, tokenizer, "paper", [], said.append)
    assert named.learning_rate == 2e-5
    assert named.max_length == model.config.longest_sequence
