"""The demo's report as one HTML page, which needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from litebert.base.pages import page
from litebert.demos.charts import Points, bars, line
from litebert.demos.findings import MEASURED_ON, Findings, LabelCount, verdict
from litebert.demos.samples import GAP
from litebert.train.evaluate import HeldOutReport
from litebert.train.metrics import Metrics

SHOWN = 320  # characters of a piece of text


def render_report(found: Findings, metrics: Sequence[Metrics], commands: str) -> str:
    """The whole page."""
    body = [
        _head(found), _accuracies(found.rows, found.seeds),
        _curves(metrics, found.held_out.unigram_loss),
        _held_out(found.held_out), _gaps(found), _orders(found), _parameters(found),
        f"<h2>Next</h2><pre>{escape(commands)}</pre>",
    ]  # fmt: skip
    return page("litebert demo", "".join(body))


def _head(found: Findings) -> str:
    words = "".join(f"<li>{escape(line)}</li>" for line in verdict(found.rows))
    return (
        "<h1>An ALBERT of your own, from raw text to a classifier</h1>"
        f"<p>Pretrained for {found.seconds / 60:.1f} minutes on {found.tokens:,} tokens of film "
        f"reviews, then fine-tuned to tell praise from blame.</p><ul>{words}</ul>"
    )


def _accuracies(rows: Sequence[LabelCount], seeds: int) -> str:
    arms = list(rows[0].accuracies)
    groups = [(row.name, list(row.accuracies.values())) for row in rows]
    head = "".join(f"<th>{escape(arm)}</th>" for arm in arms)
    lines_ = []
    for row in rows:
        cells = "".join(
            f"<td>{one.value:.1%}<br><small>{one.low:.1%} to {one.high:.1%}"
            f"{_setting(row.learning_rates[arm])}</small></td>"
            for arm, one in row.accuracies.items()
        )
        lines_.append(f"<tr><td>{escape(row.name)}</td>{cells}</tr>")
    return (
        "<h2>What pretraining is worth</h2>"
        f"<p>Accuracy on {MEASURED_ON}, mean of {seeds} seeds with its 95 % interval. All encoders "
        "are fine-tuned alike, each with the best of the same learning rates; TF-IDF is scikit-"
        "learn's, of words and word pairs, with a logistic regression; a seed chooses the same "
        "labelled sentences for all.</p>"
        f"{bars(groups, arms)}"
        f"<table><tr><th></th>{head}</tr>{''.join(lines_)}</table>"
    )


def _curves(metrics: Sequence[Metrics], unigram_loss: float) -> str:
    masked = _points(metrics, "loss", "masked_lm")
    order = _points(metrics, "accuracy", "sentence_order")
    return (
        '<h2>Pretraining</h2><div class="side">'
        "<figure><figcaption>Masked LM: loss on held-out reviews</figcaption>"
        f"{line(masked, 'minutes', (unigram_loss, 'unigram baseline'))}"
        "</figure><figure><figcaption>Sentence order: accuracy</figcaption>"
        f"{line(order, 'minutes', (0.5, 'chance'), percent=True)}"
        "</figure></div>"
    )


def _points(metrics: Sequence[Metrics], what: str, name: str) -> Points:
    found = [(m.time.seconds / 60, getattr(m, what).get(name)) for m in _evaluations(metrics)]
    return [(minutes, value) for minutes, value in found if value is not None]


def _evaluations(metrics: Sequence[Metrics]) -> list[Metrics]:
    return [one for one in metrics if one.kind == "evaluation"]


def _setting(learning_rate: float | None) -> str:
    return "" if learning_rate is None else f", learning rate {learning_rate:g}"


def _held_out(report: HeldOutReport) -> str:
    masked, order = report.objectives["masked_lm"], report.objectives["sentence_order"]
    assert order.interval is not None
    low, high = order.interval
    return (
        f"<p>At the end: {masked.accuracy:.1%} of {masked.count:,} masked tokens correct (loss "
        f"{masked.loss:.2f}, unigram baseline {report.unigram_loss:.2f}), sentence order "
        f"{order.accuracy:.1%} correct ({low:.1%} to {high:.1%} of {order.count:,}).</p>"
    )


def _gaps(found: Findings) -> str:
    rows = []
    for gap in found.gaps:
        said = ", ".join(
            f"{escape(word)} <small>{probability:.0%}</small>" for word, probability in gap.words
        )
        shown = escape(gap.sentence).replace(GAP, "<b>___</b>")
        rows.append(f"<tr><td>{shown}</td><td>{said}</td></tr>")
    return f"<h2>Words behind a mask</h2><table>{''.join(rows)}</table>"


def _orders(found: Findings) -> str:
    parts = []
    for one in found.orders:
        truth = "swapped" if one.swapped else "as written"
        mark = "right" if one.correct else "wrong"
        parts.append(
            f"<p>{truth}; the model gives “swapped” {one.probability:.0%}: "
            f'<b class="{mark}">{mark}</b></p><blockquote>{escape(_short(one.first))}</blockquote>'
            f"<blockquote>{escape(_short(one.second))}</blockquote>"
        )
    return f"<h2>Which came first?</h2>{''.join(parts)}"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + " …"


def _parameters(found: Findings) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{here:,}</td><td>{base:,}</td></tr>"
        for name, here, base in found.parameters
    )
    return (
        "<h2>Parameters</h2><p>What sharing one layer and factorising the embeddings saves.</p>"
        f"<table><tr><th></th><th>the demo's shape</th><th>base</th></tr>{rows}</table>"
    )
