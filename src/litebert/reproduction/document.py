"""A report as blocks, which are written as HTML and as Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from litebert.base.pages import page


@dataclass(frozen=True)
class Heading:
    """A heading of a level."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True)
class DocumentTable:
    """A table."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Lines:
    """Lines as they are: commands."""

    text: str


@dataclass(frozen=True)
class Picture:
    """An SVG, and the name of the file that Markdown shows it from."""

    title: str
    svg: str
    file: str


Block = Heading | Paragraph | DocumentTable | Lines | Picture


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """One page that needs nothing but itself."""
    return page(title, "".join(_html(block) for block in blocks))


def to_markdown(blocks: Sequence[Block]) -> str:
    """The same as Markdown; pictures are links to files beside it."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case Lines(text):
            return f"<pre>{escape(text)}</pre>"
        case Picture(title, svg, _):
            return f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>"
        case DocumentTable(head, rows):
            lines = [_html_row("th", head), *(_html_row("td", row) for row in rows)]
            return f"<table>{''.join(lines)}</table>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return text
        case Lines(text):
            return f"```\n{text}\n```"
        case Picture(title, _, file):
            return f"![{title}]({file})"
        case DocumentTable(head, rows):
            lines = [_markdown_row(head), "|" + "---|" * len(head), *map(_markdown_row, rows)]
            return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
