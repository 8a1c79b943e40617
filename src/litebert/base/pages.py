"""A report as one HTML page, which needs nothing but itself."""

from __future__ import annotations

from html import escape

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #1f2933; background: #fff }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2.2rem; border-top: 1px solid #e4e7eb;
       padding-top: 1.2rem }
table { border-collapse: collapse } td, th { padding: .25rem .8rem; text-align: right;
       border-bottom: 1px solid #e4e7eb } td:first-child, th:first-child { text-align: left }
.side { display: flex; flex-wrap: wrap; gap: 1rem } .side figure { flex: 1 1 24rem; margin: 0 }
figcaption { font-weight: 600 } svg { width: 100%; height: auto }
.wrong { color: #b0301c } .right { color: #1b7f4b } pre { background: #f5f7fa; padding: 1rem;
       overflow-x: auto } blockquote { margin: .6rem 0; padding-left: .8rem;
       border-left: 3px solid #cbd2d9; font-size: .92rem }
@media (prefers-color-scheme: dark) { body { color: #e4e7eb; background: #14181d }
       pre { background: #1f2933 } }
"""


def page(title: str, body: str) -> str:
    """The whole page around a body of HTML."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>{body}</body></html>\n"
    )
