"""The report of some tables: verdicts first, then every table with its claim, then what it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from litebert.base.files import write_atomic
from litebert.reproduction.charts import curves, slopes
from litebert.reproduction.document import (
    Block,
    DocumentTable,
    Heading,
    Paragraph,
    Picture,
    to_html,
    to_markdown,
)
from litebert.reproduction.findings import PairFinding, RowFinding, TableFinding
from litebert.reproduction.grid import ROWS
from litebert.reproduction.measures import MEASURES
from litebert.reproduction.provenance import ReproductionContext, what_it_took
from litebert.reproduction.row import run_folder
from litebert.reproduction.statistics import Verdict
from litebert.reproduction.summary import OrderSummary, summarize

REPORT = "report"
VERDICTS: tuple[Verdict, ...] = ("agrees", "contradicts", "undecided")
SHOWN_PAIRS = 60


def write_report(findings: Sequence[TableFinding], context: ReproductionContext) -> Path:
    """report.html and report.md with its pictures, in the grid's folder."""
    assert context.out is not None
    blocks = list(build_report(findings, context))
    folder = context.out / REPORT
    folder.mkdir(exist_ok=True)
    for block in blocks:
        if isinstance(block, Picture):
            write_atomic(context.out / block.file, block.svg.encode())
    page = context.out / f"{REPORT}.html"
    write_atomic(page, to_html("The papers' tables, reproduced", blocks).encode())
    write_atomic(context.out / f"{REPORT}.md", to_markdown(blocks).encode())
    return page


def build_report(findings: Sequence[TableFinding], context: ReproductionContext) -> Iterator[Block]:
    """All blocks of a report."""
    yield Heading("The papers' tables, reproduced", 1)
    yield from _verdict_counts(findings)
    if context.missing:
        yield Paragraph("Not measured, as its data is not there: " + ", ".join(context.missing))
    for found in findings:
        yield from _table(found, context)
    yield from what_it_took(context)


def _verdict_counts(findings: Sequence[TableFinding]) -> Iterator[Block]:
    rows = [
        [found.table.title, *map(str, map(found.count, VERDICTS)), str(found.unmeasured)]
        for found in findings
        if found.pairs
    ]
    if not rows:
        return
    totals = [sum(found.count(said) for found in findings) for said in VERDICTS]
    totals.append(sum(found.unmeasured for found in findings))
    rows.append(["all", *map(str, totals)])
    yield DocumentTable(["table", *VERDICTS, "not measured"], rows)
    summary = summarize([found.orders for found in findings if found.orders])
    if summary is not None:
        yield Paragraph(describe_summary(summary))
    yield Paragraph(
        "A verdict is given for every pair that the paper separates by a point or more: agrees or "
        "contradicts where the 95 % interval of our difference, over seeds and examples, is on one "
        "side of 0. Where the paper says that two rows are the same, the test is one of "
        "equivalence. The smallest difference that this budget finds four times in five stands "
        "beside each."
    )


def describe_summary(summary: OrderSummary) -> str:
    """The permutation test in words."""
    return (
        f"Over {summary.pairs} pairs the paper's better row is ahead by {summary.agreement:+.2f} "
        f"standard errors in the mean; with rows exchanged at random it would be "
        f"{summary.expected:+.2f}, and as far ahead with a probability of {summary.p_value:.3g}."
    )


def _table(found: TableFinding, context: ReproductionContext) -> Iterator[Block]:
    table = found.table
    yield Heading(f"{table.title} ({table.name})")
    yield Paragraph(f"Claim: {table.claim} Source: {table.source}.")
    if any(row.counted for row in found.rows.values()):
        yield _parameters(found)
    if table.compare == "counts":
        return
    expected = table.expectations.get(found.scale)  # type: ignore[call-overload]
    if expected is not None:
        yield Paragraph(f"Expected at this budget, written before the runs: {expected.says}")
    measures = [m for m in MEASURES if any(m in row.values for row in found.rows.values())]
    if measures:
        yield _values(found, measures, context.baselines)
        yield from _verdict_table(found)
        yield from _pictures(found, context, measures)
    for name, row in found.rows.items():
        if row.failed:
            yield Paragraph(f"Row {name!r} failed: {row.failed}")
        if row.left_out:
            yield Paragraph(f"Row {name!r} is left out: {row.left_out}.")
    if table.cannot_show:
        yield Paragraph(f"What a small budget cannot show: {table.cannot_show}")


def _parameters(found: TableFinding) -> DocumentTable:
    rows = []
    for row in found.rows.values():
        if (one := row.counted) is not None:
            printed = "" if one.published is None else f"{one.published:g} M"
            counts = [f"{one.with_pooler:,}", f"{one.without_pooler:,}"]
            rows.append([row.title, *counts, printed, one.remark])
    return DocumentTable(
        ["parameters", "with pooler", "without pooler", "printed", "which is"], rows
    )


def _values(
    found: TableFinding, measures: Sequence[str], baselines: Mapping[str, float]
) -> DocumentTable:
    head = ["", *(f"{MEASURES[m].title} ({MEASURES[m].unit})" for m in measures), "seeds"]
    rows = []
    for row in found.rows.values():
        if row.left_out:
            continue
        rows.append([row.title, *(_cell(row, m) for m in measures), str(len(row.seeds))])
        if row.untrained:
            before = [_figure(row.untrained[m]) if m in row.untrained else "" for m in measures]
            rows.append([f"{row.title}, untrained", *before, ""])
    if any(m in baselines for m in measures):
        beside = [f"{baselines[m]:.2f}" if m in baselines else "" for m in measures]
        rows.append(["TF-IDF and a linear model", *beside, ""])
    published = [
        [f"{row.title}, published", *(_published(found, row, m) for m in measures), ""]
        for row in found.rows.values()
    ]
    return DocumentTable(head, rows + [row for row in published if any(row[1:])])


def _cell(row: RowFinding, measure: str) -> str:
    one = row.intervals.get(measure)
    if one is None:
        return ""
    if len(row.seeds) < 2:
        return _figure(one.value)
    return f"{_figure(one.value)} ± {_figure((one.high - one.low) / 2)}"


def _figure(value: float) -> str:
    """Two decimals, but of tokens a second none."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}"


def _published(found: TableFinding, row: RowFinding, measure: str) -> str:
    """Beside the first measure that stands for a column."""
    for name, column in found.table.columns.items():
        first = next(
            (m for m in column.measures if any(m in r.values for r in found.rows.values())), None
        )
        if first == measure and name in row.published:
            return f"{row.published[name]:g}"
    return ""


def _verdict_table(found: TableFinding) -> Iterator[Block]:
    rows = [_verdict_row(found, pair) for pair in found.pairs if pair.measure is not None]
    if rows:
        yield DocumentTable(
            ["pair (paper's better first)", "by", "published", "ours (95 %)", "detectable",
             "verdict", "expected"], rows[:SHOWN_PAIRS],
        )  # fmt: skip
    unmeasured = sorted({pair.column for pair in found.pairs if pair.measure is None})
    if unmeasured:
        yield Paragraph(f"Published columns without a measure here: {', '.join(unmeasured)}.")


def _verdict_row(found: TableFinding, pair: PairFinding) -> list[str]:
    rows = found.table.rows
    sign = "=" if pair.kind == "same" else ">"
    published = "" if pair.published is None else f"{pair.published:+.1f}"
    ours = detectable = ""
    if pair.ours is not None:
        one = pair.ours.interval
        ours = f"{one.value:+.2f} ({one.low:+.2f} to {one.high:+.2f})"
        detectable = f"{pair.ours.detectable:.2f}"
    assert pair.measure is not None
    name = f"{pair.column}: {rows[pair.first].title} {sign} {rows[pair.second].title}"
    said = pair.verdict + (f" ({pair.why})" if pair.why else "")
    title = MEASURES[pair.measure].title
    return [name, title, published, ours, detectable, said, pair.expected or ""]


def _pictures(
    found: TableFinding, context: ReproductionContext, measures: Sequence[str]
) -> Iterator[Block]:
    for name, column in found.table.columns.items():
        have = [m for m in column.measures if m in measures]
        rows = [
            r for r in found.rows.values() if name in r.published and have and have[0] in r.values
        ]
        if have and len(rows) > 1:
            drawn = slopes(
                {row.title: (row.published[name], row.intervals[have[0]].value) for row in rows}
            )
            title = f"{column.title}: the paper's order (left) and ours (right)"
            yield Picture(title, drawn, f"{REPORT}/{found.table.name}-{_file(name)}.svg")
    runs = {
        row.title: run_folder(context.out / ROWS / row.key, row.seeds[0])
        for row in found.rows.values()
        if context.out is not None and row.key is not None and row.seeds
    }
    if runs and (drawn := curves(runs)):
        title = "held-out masked-LM loss of the first seed, in each run's own masking"
        yield Picture(title, drawn, f"{REPORT}/{found.table.name}-curves.svg")


def _file(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name).lower()


def verdict_line(found: TableFinding) -> str:
    """A table's verdicts in a line."""
    counts: Mapping[str, int] = {said: found.count(said) for said in VERDICTS}
    shown = [f"{count} {said}" for said, count in counts.items()]
    return ", ".join(shown + ([f"{found.unmeasured} not measured"] if found.unmeasured else []))
