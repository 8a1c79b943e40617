"""A report on labelled examples before anything is trained on them.

What makes scores lie or training fail: labels that are rare or one-sided, texts that occur twice
with different labels, dev texts that are also in train, rows that cannot be read, texts too long
for the model, markup, tokens that the vocabulary does not have. What depends on the kind of task
comes from it: `inputs_of`, `answers_of` and `counted_of` (tasks/task.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from litebert.reading.markup import count_markup
from litebert.tasks.features import encode_all
from litebert.tasks.task import Task
from litebert.text.tokenizer import Tokenizer

MOST_ANSWERS = 20  # that are listed
FEW = 8  # examples of a label that teach it little
ONE_SIDED = 0.9  # fraction of one label that makes accuracy a poor measure
MUCH = 0.01  # fraction of unknown tokens that is worth a warning
TOO_LONG = 0.05  # fraction of long texts that is
SHOWN = 3  # places that are named


@dataclass(frozen=True)
class PartReport:
    """One file of examples."""

    name: str
    examples: int
    refused: dict[str, int]  # rows that cannot be read, by reason
    refused_at: list[str]  # the first of them
    answers: dict[str, int]  # how often each occurs; the most frequent ones
    kinds_of_answers: int
    answered: int  # all answers together
    repeated: int  # examples whose inputs occurred before
    conflicts: list[str]  # inputs that occur with different answers: where
    marked: int  # examples with wiki or HTML markup
    markup: str  # pieces of it
    length_unit: str  # tokens where a tokenizer is given, else words
    lengths: dict[str, int]  # median, 95 %, longest
    too_long: int  # examples beyond max_length; of words, not counted
    unknown_fraction: float | None  # of tokens
    unknown: list[str]  # words that hold such tokens


@dataclass(frozen=True)
class DataReport:
    """All files of a task, and what should be looked at."""

    task: str
    max_length: int
    parts: dict[str, PartReport]
    shared: int = 0  # dev examples that are in train, too
    shared_at: list[str] = field(default_factory=list)
    only_in_dev: list[str] = field(default_factory=list)  # labels
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Part:
    """What is reported on: examples, and what was wrong with the rows that gave none."""

    name: str
    examples: Sequence[Any]
    refused: Sequence[str] = ()


def report_on(
    kind: type[Task], train: Part, dev: Part | None, tokenizer: Tokenizer | None, max_length: int
) -> DataReport:
    """The report on a training set, and on a dev set where there is one."""
    parts = {"train": train} | ({} if dev is None else {"dev": dev})
    reports = {name: _part(kind, part, tokenizer, max_length) for name, part in parts.items()}
    shared, only_in_dev = list[str](), list[str]()
    if dev is not None:
        known = {kind.key_of(example) for example in train.examples}
        shared = [_where(e) for e in dev.examples if kind.key_of(e) in known]
        labels = {label for example in train.examples for label in kind.labels_of(example)}
        asked = {label for example in dev.examples for label in kind.labels_of(example)}
        only_in_dev = sorted(asked - labels)
    report = DataReport(kind.kind, max_length, reports, len(shared), shared[:SHOWN], only_in_dev)
    report.warnings.extend(_warnings(report))
    report.warnings.extend(_label_warnings(kind, train.examples))
    return report


def _part(kind: type[Task], part: Part, tokenizer: Tokenizer | None, max_length: int) -> PartReport:
    texts = [" ".join(kind.texts_of(example)) for example in part.examples]
    answers = Counter(a for example in part.examples for a in kind.counted_of(example))
    markup = count_markup(texts)
    lengths, unknown, fraction = _lengths(texts, tokenizer)
    refused = Counter(message.rpartition(": ")[2] for message in part.refused)
    repeated, conflicts = _repetitions(kind, part.examples)
    return PartReport(
        name=part.name,
        examples=len(part.examples),
        refused=dict(refused.most_common()),
        refused_at=list(part.refused[:SHOWN]),
        answers=dict(answers.most_common(MOST_ANSWERS)),
        kinds_of_answers=len(answers),
        answered=answers.total(),
        repeated=repeated,
        conflicts=conflicts,
        marked=markup.marked,
        markup=markup.listed(),
        length_unit="words" if tokenizer is None else "tokens",
        lengths={
            "median": int(np.median(lengths)), "95 %": int(np.percentile(lengths, 95)),
            "longest": int(max(lengths)),
        },
        too_long=0 if tokenizer is None else sum(length > max_length for length in lengths),
        unknown_fraction=fraction,
        unknown=unknown,
    )  # fmt: skip


def _where(example: Any) -> str:
    return example.where.rpartition("/")[2] or f"example {example.id}"


def _repetitions(kind: type[Task], examples: Sequence[Any]) -> tuple[int, list[str]]:
    """How many examples occurred before, and where the same one has another answer."""
    first: dict[tuple[str, ...], Any] = {}
    repeated, conflicts = 0, list[str]()
    for example in examples:
        before = first.setdefault(kind.key_of(example), example)
        if before is example:
            continue
        repeated += 1
        if kind.answers_of(before) != kind.answers_of(example):
            told = " and ".join(", ".join(kind.answers_of(e))[:40] for e in (before, example))
            conflicts.append(f"{_where(example)}: as {_where(before)}, but {told}")
    return repeated, conflicts


def _lengths(
    texts: Sequence[str], tokenizer: Tokenizer | None
) -> tuple[list[int], list[str], float | None]:
    """Lengths with [CLS] and [SEP], words that are not known, the fraction of unknown tokens."""
    if tokenizer is None:
        return [len(text.split()) for text in texts], [], None
    encoded = list(encode_all(tokenizer, texts))
    unk = tokenizer.special.unk
    counts = [int((np.asarray(ids) == unk).sum()) for ids in encoded]
    words: Counter[str] = Counter()
    for text, count in zip(texts, counts, strict=True):
        if count and len(words) < 1000:
            words.update(word for word in text.split() if unk in tokenizer.encode(word))
    lengths = [len(ids) + 2 for ids in encoded]
    fraction = sum(counts) / max(sum(map(len, encoded)), 1)
    return lengths, [word for word, _ in words.most_common(10)], fraction


def _label_warnings(kind: type[Task], examples: Sequence[Any]) -> Iterator[str]:
    labels = sorted({label for example in examples for label in kind.labels_of(example)})
    if len(labels) == 1:
        yield f"train: {labels[0]!r} is the only label, so there is nothing to learn"
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(label.casefold(), []).append(label)
    for some in alike.values():
        if len(some) > 1:
            listed = " and ".join(map(repr, some[:SHOWN]))
            yield f"train: {listed} are different labels; write them alike if they are one"


def _warnings(report: DataReport) -> Iterator[str]:
    for name, part in report.parts.items():
        yield from _part_warnings(name, part, report.max_length)
    if report.shared:
        yield (
            f"{report.shared:,} of {report.parts['dev'].examples:,} dev examples are also in train "
            f"({', '.join(report.shared_at)}), so scores on dev are too good: remove them from one"
        )
    for label in report.only_in_dev[:SHOWN]:
        yield f"the label {label!r} is in dev only, so it cannot be learned"


def _part_warnings(name: str, part: PartReport, max_length: int) -> Iterator[str]:
    count = part.examples
    if part.refused:
        yield (
            f"{name}: {sum(part.refused.values()):,} rows cannot be read and stop training: "
            f"{'; '.join(part.refused_at)}"
        )
    if part.conflicts:
        count_of, places = len(part.conflicts), "; ".join(part.conflicts[:SHOWN])
        yield f"{name}: {count_of:,} examples repeat others with another answer: {places}"
    if part.repeated > MUCH * count:
        yield f"{name}: {part.repeated:,} of {count:,} examples occurred before"
    yield from _answer_warnings(name, part)
    if part.too_long > TOO_LONG * count:
        yield (
            f"{name}: {part.too_long:,} of {count:,} examples are longer than {max_length} tokens "
            "(--set max_length=N when fine-tuning, or --overflow stride)"
        )
    if part.marked > MUCH * count:
        yield f"{name}: {part.marked:,} of {count:,} examples hold markup ({part.markup})"
    if part.unknown_fraction is not None and part.unknown_fraction > MUCH:
        yield (
            f"{name}: {part.unknown_fraction:.1%} of the tokens are unknown to the vocabulary, as "
            f"in {', '.join(part.unknown[:5])}: is it of this language?"
        )


def _answer_warnings(name: str, part: PartReport) -> Iterator[str]:
    if not part.answered:
        return
    best, most = next(iter(part.answers.items()))
    if most > ONE_SIDED * part.answered and part.kinds_of_answers > 1:
        correct = most / part.answered
        yield f"{name}: always saying {best!r} is {correct:.1%} correct; look at F1 instead"
    if part.kinds_of_answers > MOST_ANSWERS:
        return
    rare = [answer for answer, count in part.answers.items() if count < FEW]
    if rare and name == "train":
        yield f"{name}: fewer than {FEW} of {', '.join(map(repr, rare[:5]))}, which teach little"


# ----------------------------------------------------------------------------------- for people


def show_data(report: DataReport) -> Group:
    """The report as tables, and its warnings."""
    shown = []
    for name, part in report.parts.items():
        facts = Table(
            title=f"\n{name}: {part.name}", title_justify="left", show_header=False, box=None
        )
        for label, value in _facts(part, report.max_length).items():
            facts.add_row(label, Text(value))
        shown += [facts, _bars(part)]
    lines = [Text(f"! {warning}") for warning in report.warnings]
    return Group(*shown, Text(""), *(lines or [Text("nothing conspicuous")]))


def _facts(part: PartReport, max_length: int) -> dict[str, str]:
    lengths = ", ".join(f"{name} {value:,}" for name, value in part.lengths.items())
    rows = {
        "examples": f"{part.examples:,}",
        "not readable": ", ".join(f"{n:,} {why}" for why, n in part.refused.items()),
        "occurred before": f"{part.repeated:,}",
        "other answers": f"{len(part.conflicts):,}",
        "with markup": f"{part.marked:,}" + (f" ({part.markup})" if part.markup else ""),
        "length": f"{lengths} {part.length_unit}",
    }
    if part.unknown_fraction is not None:
        rows[f"over {max_length} tokens"] = f"{part.too_long:,}"
        unknown = f" ({', '.join(part.unknown)})" if part.unknown else ""
        rows["unknown tokens"] = f"{part.unknown_fraction:.2%}{unknown}"
    return {name: value for name, value in rows.items() if value}


def _bars(part: PartReport) -> Table:
    table = Table(show_header=False, box=None)
    largest = max(part.answers.values(), default=1)
    for answer, count in part.answers.items():
        bar = "█" * round(40 * count / largest)
        table.add_row(Text(answer), f"{count:,}", f"{count / part.answered:.1%}", bar)
    if (more := part.kinds_of_answers - len(part.answers)) > 0:
        table.add_row(f"and {more:,} more", "", "", "")
    return table
