"""/openapi.json held to its word, by requests that schemathesis makes up.

    make contract                                   (schemathesis in an environment of its own)
    python -m tests.serving.contract [--cases 10000] [--schemathesis PATH]

A service with a model of every kind of task; each is asked on its routes. No answer may have a
status of 500 or more, or be in another form than /openapi.json says. What is wrong by the schema
must be refused; what is right by it may be refused too, since what an input looks like follows from
the model's task, which the schema cannot know.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.inference.engines import write_model
from tests.serving.service import Service, start

KINDS = ("classify", "pair", "regress", "tag", "qa", "choice", None)
ASKED = ("classify", "pair", "tag", "qa", "choice", "pretrained", "regress")
NOT_CHECKED = "positive_data_acceptance"
REFUSALS = [400, 401, 404, 405, 406, 413, 415, 422]  # 413: made-up bodies may be too large, too
COUNTED = re.compile(rb'litebert_requests_total\{route="([^"]*)",status="(\d+)"\} ([\d.]+)')


def counted(service: Service) -> dict[int, int]:
    """Requests so far by their status, as the service itself has counted them."""
    found: dict[int, int] = {}
    for _, status, count in COUNTED.findall(service.get("/metrics")[1]):
        found[int(status)] = found.get(int(status), 0) + int(float(count))
    return found


def run(schemathesis: str, service: Service, model: str, examples: int, seed: int) -> bool:
    """Ask one model on all routes; whether all answers were as they should be."""
    with tempfile.TemporaryDirectory() as scratch:
        settings = Path(scratch, "schemathesis.toml")
        settings.write_text(
            f'[parameters]\n"path.name" = "{model}"\n'
            f"[checks.negative_data_rejection]\nexpected-statuses = {REFUSALS}\n"
        )
        found = subprocess.run(
            [schemathesis, "--config-file", str(settings), "run", "--max-examples", str(examples),
             "--exclude-checks", NOT_CHECKED, "--continue-on-failure", "--seed", str(seed),
             "--suppress-health-check", "all", "--request-timeout", "30", "--warnings", "off",
             f"http://127.0.0.1:{service.port}/openapi.json"],
            capture_output=True, text=True, cwd=scratch,
        )  # fmt: skip
    if found.returncode:
        print(found.stdout[-8000:], found.stderr[-2000:])
    return found.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--schemathesis", default=shutil.which("schemathesis"))
    options = parser.parse_args()
    if options.schemathesis is None:
        sys.exit("schemathesis is not installed; make contract installs it")
    with tempfile.TemporaryDirectory() as scratch:
        folders = {
            kind or "pretrained": write_model(Path(scratch, kind or "pretrained"), kind)
            for kind in KINDS
        }
        named = [f"{name}={folder}" for name, folder in folders.items()]
        service = start(*named, "--precision", "fp32", "--runs", scratch)
        good, seed = True, options.seed
        while sum(counted(service).values()) < options.cases:
            model, examples = ASKED[seed % len(ASKED)], max(5, options.cases // 1000)
            fine = run(str(Path(options.schemathesis).absolute()), service, model, examples, seed)
            good, seed = good and fine, seed + 1
            print(f"{model}: {'as it should be' if fine else 'FAILED'}; so far {counted(service)}",
                  flush=True)  # fmt: skip
        statuses = counted(service)
        broken = {status: count for status, count in statuses.items() if status >= 500}
        print(f"{sum(statuses.values()):,} requests; 5xx: {broken or 0}; exit code "
              f"{service.stop()}; {'all' if good else 'NOT all'} answers as described")  # fmt: skip
        if "Traceback" in service.log:
            print(service.log[-5000:])
    return int(bool(broken) or not good)


if __name__ == "__main__":
    sys.exit(main())
