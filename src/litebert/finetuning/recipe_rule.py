"""The recipe that fits the data: facts in, settings and their reasons out. Pure, and stated whole.

    encoder        learning rate   a lone text's vector   pairs          dropout
    small          0.128 / width   mean of its tokens     bi-encoder     0.2 of few examples, else 0
    sentence       1e-4            mean of its tokens     one sequence   the model's own
    published      1e-4, 2e-5      [CLS]                  one sequence   the model's own

An encoder is small below 320 units (trained for minutes or hours), a sentence encoder where its
folder says so (modules.json), else published: 1e-4 below 768 units, 2e-5 from there on. Numbers of
pairs go through a bi-encoder of sentence encoders too: how alike two texts are is what they were
trained to say. Questions about passages bear twice the rate, as in Table 14. How long: at least
ENOUGH_STEPS by more epochs, since few labels need hundreds of steps and not three epochs (Mosbach
2021). How wide: what holds nearly all sequences; long ones have no dropout in attention. Up to
FEW_OF_A_LABEL texts a label are drawn together as pairs before the head is fitted, if the encoder's
vectors mean something from the start (SetFit, Tunstall et al. 2022). benchmarks/first_hour.py holds
the rule against a grid; docs/log/fine-tuning.md says what of it was measured.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from litebert.tasks.task import Form

Method = Literal["whole", "freeze", "contrastive"]  # what learns: all, the head alone, pairs first
Training = Literal["small", "sentence", "published"]  # how an encoder was trained

SMALL, PAPER = (
    320,
    768,
)  # units: below the first an encoder is small; the paper's begin at the other
ENOUGH_STEPS = 400
EPOCHS = (3, 30)  # at least, at most
FEW = 2_000  # examples, below which batches are small
SMALL_RATE = 0.128  # learning rate of a small encoder, times its width
HIGHEST_RATE = 2e-3
SMALL_DROPOUT = 0.2  # in a small encoder of few examples
BATCHES = (16, 32)  # sequences a step, of few and of many examples
FEW_OF_A_LABEL = 64  # texts; up to so many, contrastive pairs come before the head
CONTRASTIVE = {"batch_size": 32, "steps": 60, "learning_rate": 5e-5}  # measured: the log
ENOUGH_DEV = 200  # examples; fewer measure no closer than 7 points, and the luckiest would win
LONG = 128  # tokens; beyond, a CPU's attention takes half the time without dropout
ROUND = 32  # lengths are multiples of it
COVERED = 0.99  # of the sequences fit whole


@dataclass(frozen=True)
class DataFacts:
    """What the examples are like."""

    form: Form
    train: int  # examples
    dev: int
    numeric: bool  # a number is predicted, not a label
    length: int  # tokens that COVERED of the sequences have at most
    of_a_label: float | None = None  # examples; None where labels are not drawn together


@dataclass(frozen=True)
class StartFacts:
    """What the encoder is like."""

    training: Training
    width: int
    positions: int


@dataclass(frozen=True)
class Choice:
    """Settings of a recipe, and why they are what they are, a line each."""

    settings: dict[str, Any]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class _FormRule:
    """What depends on the form of the examples alone."""

    shortest: int  # max_length lies between these
    longest: int
    batch_sizes: tuple[int, int] = BATCHES
    rate_factor: float = 1.0  # of the learning rate of encoders that are not small


FORMS: dict[Form, _FormRule] = {
    "text": _FormRule(64, 256),
    "pair": _FormRule(64, 256),
    "words": _FormRule(64, 256),
    "passage": _FormRule(128, 384, rate_factor=2.0),
    "options": _FormRule(128, 512, (8, 16)),
}


def choose_by_rule(
    data: DataFacts, start: StartFacts, method: Method | None = None,
    decided: Collection[str] = (),
) -> Choice:  # fmt: skip
    """The recipe for these examples and this encoder; `method` where the user has chosen it.

    Settings that the user has `decided` are no choice of the rule, and need no reason.
    """
    settings: dict[str, Any] = {}
    reasons: list[str] = []
    method = method or choose_method(data, start)
    for part in (*_training(data, start, method), _length(data, start)):
        settings |= part[0]
        reasons += [part[1]] if part[1] and not part[0].keys() <= set(decided) else []
    if data.dev < ENOUGH_DEV:
        settings["keep"] = "last"
        if "keep" not in decided:
            reasons.append(
                f"the last evaluation is kept: of {data.dev:,} dev examples the luckiest would win"
            )
    return Choice(settings, tuple(reasons))


Part = tuple[dict[str, Any], str]


def choose_method(data: DataFacts, start: StartFacts) -> Method:
    """Pairs first where labels are few and the encoder's vectors mean something from the start."""
    few = data.of_a_label is not None and data.of_a_label <= FEW_OF_A_LABEL
    return "contrastive" if few and start.training == "sentence" else "whole"


def _training(data: DataFacts, start: StartFacts, method: Method) -> list[Part]:
    if method == "freeze":
        return [_probe(data)]
    if method == "contrastive":
        return [_contrast(data)]
    return [_duration(data), _learning(data, start), _pooling(data, start)]


def _probe(data: DataFacts) -> Part:
    pairs = data.form == "pair"
    how = "two texts are compared by their means" if pairs else "a text's vector is its mean"
    settings = {"freeze": True, "pooling": "mean", "bi_encoder": pairs}
    return settings, f"the encoder is frozen, and only the head is fitted; {how}"


def _contrast(data: DataFacts) -> Part:
    steps, batch = CONTRASTIVE["steps"], CONTRASTIVE["batch_size"]
    why = (
        f"contrastive pairs before the head, {steps} steps of {batch} texts: up to "
        f"{FEW_OF_A_LABEL} examples a label are few, and make many pairs (--set contrastive=false)"
    )
    return {**CONTRASTIVE, "contrastive": True, "pooling": "mean"}, why


def _duration(data: DataFacts) -> Part:
    few, many = FORMS[data.form].batch_sizes
    batch = few if data.train < FEW else many
    steps = max(data.train / batch, 1)
    at_least, at_most = EPOCHS
    epochs = round(min(max(ENOUGH_STEPS / steps, at_least), at_most))
    why = f"{epochs} epochs of {data.train:,} examples, {batch} a step"
    if epochs > at_least:
        why += f": few are read more often, up to {ENOUGH_STEPS} steps or {at_most} times"
    return {"batch_size": batch, "epochs": epochs}, why


def _learning(data: DataFacts, start: StartFacts) -> Part:
    kind = {"small": "small", "sentence": "sentence", "published": "trained"}[start.training]
    why = f"a {kind} encoder of width {start.width}"
    if start.training != "small":
        rate = FORMS[data.form].rate_factor * (1e-4 if start.width < PAPER else 2e-5)
        return {"learning_rate": rate}, f"learning rate {rate:g}: {why}"
    rate = float(f"{min(SMALL_RATE / start.width, HIGHEST_RATE):.1g}")
    dropout = SMALL_DROPOUT if data.train < FEW else 0.0
    settings = {"learning_rate": rate, "dropout": dropout}
    return settings, f"learning rate {rate:g}, dropout {dropout:g}: {why}"


def _pooling(data: DataFacts, start: StartFacts) -> Part:
    apart = {"bi_encoder": True, "pooling": "mean"}
    if data.form == "pair" and start.training == "small":
        return apart, "bi-encoder: small encoders do not learn to compare texts in one sequence"
    if data.form == "pair" and data.numeric and start.training == "sentence":
        return apart, "bi-encoder: a sentence encoder was trained to say how alike two texts are"
    if data.form in ("text", "pair") and start.training != "published":
        what = "a sentence encoder was" if start.training == "sentence" else "small encoders are"
        return {"pooling": "mean"}, f"mean pooling: {what} trained without a use of [CLS]"
    return {"pooling": "first"}, ""


def _length(data: DataFacts, start: StartFacts) -> Part:
    form = FORMS[data.form]
    wanted = min(max(-(-data.length // ROUND) * ROUND, form.shortest), form.longest)
    length = min(wanted, start.positions)
    why = f"max_length {length}: {COVERED:.0%} of the sequences have at most {data.length} tokens"
    if data.length > length:
        bound = "the encoder's positions" if length < wanted else "what is affordable"
        why += f", more than {bound}"
    if length <= LONG:
        return {"max_length": length}, why
    why += "; attention without dropout, which takes half of the time and a third of the memory"
    return {"max_length": length, "attention_dropout": 0.0}, why
