"""Write constraints.txt anew: the newest versions of everything that `make install` installs.

    make constraints

A throwaway environment gets `.[dev]` and the build backend, held back by nothing but the version of
torch in constraints-cpu.txt. What pip then finds, itself included, becomes the file. torch and
its CUDA packages are left out: they depend on the machine, all else does not.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
TORCH = ROOT / "constraints-cpu.txt"
OF_THE_MACHINE = ("torch==", "triton==", "nvidia-", "cuda-")
HEADER = """\
# What `make install` installs, to the version: all of `.[dev]`, its build backend, and pip.
# Written by `make constraints` with Python {python}; torch is in constraints-cpu.txt.
"""


def main() -> None:
    """Install everything anew, then write down what came."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    python = "{}.{}".format(*sys.version_info)
    oldest = project["project"]["requires-python"].removeprefix(">=")
    if python != oldest:  # newer Pythons get versions that the oldest one cannot install
        raise SystemExit(f"constraints are made with Python {oldest}, not {python}")
    with tempfile.TemporaryDirectory() as folder:
        pins = _install(Path(folder), project["build-system"]["requires"])
    CONSTRAINTS.write_text(HEADER.format(python=python) + "".join(f"{pin}\n" for pin in pins))
    print(f"{CONSTRAINTS.name}: {len(pins)} packages")


def _install(folder: Path, build_backend: list[str]) -> list[str]:
    """The pins of a new environment with everything in it."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip"]
    subprocess.run([*pip, "install", "--quiet", "--upgrade", "pip"], check=True)
    # hatchling asks for `editables` only while it builds an editable install.
    wanted = [*build_backend, "editables", "-e", f"{ROOT}[dev]"]
    subprocess.run([*pip, "install", "--quiet", "-c", str(TORCH), *wanted], check=True)
    freeze = [*pip, "freeze", "--all", "--exclude-editable"]
    found = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line for line in found if not line.startswith(("#", *OF_THE_MACHINE))]


if __name__ == "__main__":
    main()
