"""How much of a step is communication, by the number of devices: a line a preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO

from litebert.base.errors import MissingExtraError
from litebert.planning.cluster import ClusterPlan


def communication_picture(lines: Mapping[str, Sequence[ClusterPlan]]) -> bytes:
    """A PNG: the share of communication on the left, gradient bytes by compute on the right."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import PercentFormatter
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing the plan") from None
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    devices: list[int] = []
    for place, (name, plans) in enumerate(lines.items()):
        devices = [plan.devices for plan in plans]
        fractions = [plan.fraction for plan in plans]
        left.plot(devices, fractions, marker="o", label=name, color=f"C{place}")
        right.barh(name, plans[-1].bytes_per_petaflop / 1e6, color=f"C{place}")
    left.set_xscale("log", base=2)
    left.set_xticks(devices, [f"{count:,}" for count in devices])
    left.set_ylim(0, 1)
    left.yaxis.set_major_formatter(PercentFormatter(1.0))
    left.set_xlabel("devices")
    left.set_title("communication, of a step")
    left.grid(alpha=0.25)
    left.legend()
    right.invert_yaxis()
    right.set_title("gradients, MB for 10$^{15}$ FLOPs")
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return picture.getvalue()
