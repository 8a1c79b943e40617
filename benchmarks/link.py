"""Two ranks over a slow link: the step that `litebert plan` predicts, and the step that is taken.

    sudo python benchmarks/link.py [--rate 100mbit] [--delay 10ms] [--steps 6]

Two network namespaces (root and `ip`), a rank in each, on a core of its own; the slow cable between
them is a thread of this process. A shared and an unshared encoder of equal compute: the paper's
claim about communication, measured. Compute is measured with the same two ranks on a fast cable;
communication is arithmetic (planning/cluster.py). Bar: the step within 25 % of the plan's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PRESET, BATCH, LENGTH = "albert-mini", 32, 128
BAR = 0.25


def take_steps(sharing: str, steps: int, out: Path) -> None:
    """What a rank does: steps on its half of a random batch, the medians of their times."""
    import torch

    from litebert.configs.load import load_preset
    from litebert.train.build import build_learner
    from litebert.train.distributed import join_group
    from litebert.train.optimizer import build_optimizer
    from litebert.train.pretrain import build_step
    from litebert.train.speed import random_batch

    torch.set_num_threads(1)
    preset = load_preset(PRESET, [f"model.sharing={sharing}", "precision=fp32"])
    with join_group(120.0) as group:
        learner = build_learner(preset, group.device, (None, None), lambda _: None)
        group.broadcast_parameters(learner)
        step = build_step(preset, learner, build_optimizer(learner, preset.optimizer), group)
        batch = random_batch(preset.model, BATCH // group.world_size, LENGTH, preset.seed)
        times = []
        for number in range(steps + 1):
            began = time.perf_counter()
            step(batch, number, 1e-4)
            times.append(time.perf_counter() - began)
        found = {
            "seconds": statistics.median(times[1:]),
            "parameters": sum(p.numel() for p in learner.parameters()),
        }
        if group.is_main:
            out.write_text(json.dumps(found))


def in_ranks(network, sharing: str, steps: int, folder: Path) -> dict[str, float]:
    """A rank on each host."""
    from tests.cluster.network import PYTHON, wait_until

    out = folder / f"{sharing}.json"
    out.unlink(missing_ok=True)
    started = [
        network.start(
            number, "taskset", "-c", number % (os.cpu_count() or 1), PYTHON, __file__, "--take",
            sharing, "--steps", steps, "--out", out, log=folder / f"rank-{number}.log",
            RANK=str(number), WORLD_SIZE="2", LOCAL_WORLD_SIZE="1", LOCAL_RANK="0",
            MASTER_ADDR=network.address(0), MASTER_PORT="29433",
        )
        for number in (0, 1)
    ]  # fmt: skip
    wait_until(lambda: all(p.poll() is not None for p in started), 300, f"{sharing}: the ranks")
    if not out.exists():
        raise SystemExit((folder / "rank-0.log").read_text())
    return json.loads(out.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rate", default="100mbit")
    parser.add_argument("--delay", default="10ms")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--take", help="(of a rank) the sharing of its encoder")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.take:
        take_steps(options.take, options.steps, options.out)
        return
    from tests.cluster.network import two_hosts

    from litebert.planning.cluster import Cluster, parse_latency, parse_network, plan_cluster

    rate, delay = options.rate.replace("mbit", "Mbit").replace("gbit", "Gbit"), options.delay
    found = {}
    for sharing in ("all", "none"):
        with tempfile.TemporaryDirectory() as folder, two_hosts() as network:
            fast = in_ranks(network, sharing, options.steps, Path(folder))
            network.shape(parse_network(rate), parse_latency(delay))
            slow = in_ranks(network, sharing, options.steps, Path(folder))
        cluster = Cluster(2, 2, parse_network(rate), parse_latency(delay))
        planned = plan_cluster(
            cluster, parameters=int(fast["parameters"]), flops=2 * fast["seconds"], steps=1,
            flops_per_second=1.0,
        )  # fmt: skip
        error = slow["seconds"] / planned.step - 1
        found[sharing] = slow["seconds"], planned
        print(
            f"sharing {sharing}: {fast['parameters']:,.0f} parameters, step without the link's "
            f"limits {fast['seconds']:.3f} s; at {options.rate}, {options.delay}: "
            f"{slow['seconds']:.3f} s, planned {planned.step:.3f} s "
            f"(communication {planned.fraction:.0%}): {error:+.1%} "
            f"({'within' if abs(error) <= BAR else 'BEYOND'} {BAR:.0%})",
            flush=True,
        )
    ratio = found["none"][0] / found["all"][0]
    plan = found["none"][1].step / found["all"][1].step
    print(f"unshared against shared, at equal compute: {ratio:.2f}x the time (planned {plan:.2f}x)")


if __name__ == "__main__":
    main()
