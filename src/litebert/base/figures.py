"""Figures by matplotlib: plain axes, as SVG inside a page or as PNG. No display is needed."""

from __future__ import annotations

from io import BytesIO, StringIO
from typing import Any

from litebert.base.errors import MissingExtraError

GREY = "#7b8794"  # legible on white and on black
COLOURS = ("#3e8ed0", "#e4572e", "#4f9d69", "#c7a45a", "#8367c7", "#9aa5b1", "#d36ba6", "#3aa6a6")
PANEL = (5.2, 3.0)  # inches


def new_axes(
    panels: int = 1, *, extra: str, purpose: str, size: tuple[float, float] = PANEL
) -> tuple[Any, list[Any]]:
    """A figure with panels side by side; `extra` brings matplotlib, needed for a `purpose`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", extra, purpose) from None
    figure = Figure(figsize=(size[0] * panels, size[1]), layout="constrained")
    found = list(figure.subplots(1, panels, squeeze=False)[0])
    for axes in found:
        axes.tick_params(colors=GREY)
        axes.grid(axis="y", alpha=0.25)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(GREY)
    return figure, found


def svg(figure: Any) -> str:
    """The figure as an element of a page; the same figure gives the same text."""
    from matplotlib import rc_context

    text = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "litebert"}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def png(figure: Any) -> bytes:
    """The figure as a picture."""
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120, metadata={"Software": None})
    return picture.getvalue()
