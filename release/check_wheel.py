"""Build the package, install it into an empty environment, and walk a tiny flow with it.

    make wheel

The source distribution and the wheel stay in dist/. The environment gets the wheel and its core
dependencies, at the versions of the constraints files; everything runs in a temporary folder, so
nothing of the checkout can help.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
DIST = ROOT / "dist"
PYTHON = Path(sys.executable)
CONSTRAINTS = ROOT / "constraints.txt"
TORCH = ROOT / "constraints-cpu.txt"

DOCUMENTS, ROWS = 60, 48
SUBJECTS = (
    "The film", "This story", "Her acting", "The music", "Every scene", "His new play",
    "That voice", "The ending", "A quiet dialogue", "The young hero", "Their journey",
)  # fmt: skip
OPINIONS = {
    "praise": ("was a joy to watch", "moved us all", "is bright and clever", "deserves its fame"),
    "blame": ("was a bore to watch", "left us cold", "is dull and clumsy", "deserves no praise"),
}
COMMANDS = (
    "--help",
    "presets",
    "tokenizer train text.txt --out tokenizer --vocab-size 60",
    "prepare text.txt --tokenizer tokenizer --out corpus --held-out 0.1",
    "pretrain albert-tiny --corpus corpus --out run --budget 4steps",
    "finetune run --task classify --train train.csv --out tuned --set epochs=1",
    "predict tuned --input new.csv --out predictions.jsonl",
)


def main() -> None:
    """Build, install, run; stop at the first thing that is wrong."""
    wheel = _build()
    _check_contents(wheel)
    with tempfile.TemporaryDirectory() as folder:
        binaries = _install(wheel, Path(folder, "environment"))
        work = Path(folder, "work")
        work.mkdir()
        print(_run([binaries / "python", "-I", ROOT / "release" / "load_shipped.py"], work), end="")
        _write_texts(work)
        for command in COMMANDS:
            _run([binaries / "litebert", *command.split()], work)
        _check_predictions(work / "predictions.jsonl")
    print(f"{wheel.name}: builds, installs and runs")


def _build() -> Path:
    shutil.rmtree(DIST, ignore_errors=True)
    pinned = ["--dependency-constraints-txt", CONSTRAINTS]
    _run([PYTHON, "-m", "build", *pinned, "--outdir", DIST, ROOT], ROOT)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def _check_contents(wheel: Path) -> None:
    """Every file of the package and the licence are in the wheel; CITATION.cff is up to date."""
    files = (path for path in SOURCE.rglob("*") if path.is_file())
    wanted = {str(path.relative_to(SOURCE)) for path in files if path.suffix != ".pyc"}
    shipped = set(zipfile.ZipFile(wheel).namelist())
    name, version, *_ = wheel.name.split("-")
    licence = f"{name}-{version}.dist-info/licenses/LICENSE"
    if missing := sorted({*wanted, licence} - shipped):
        raise SystemExit(f"{wheel.name} lacks {', '.join(missing)}")
    if f"\nversion: {version}\n" not in (ROOT / "CITATION.cff").read_text():
        raise SystemExit(f"CITATION.cff does not name version {version}")
    print(f"{wheel.name}: {len(shipped)} files")


def _install(wheel: Path, folder: Path) -> Path:
    """The folder of commands of a new environment that holds the wheel and what it needs."""
    venv.create(folder)
    binaries = folder / "bin"
    pip = [PYTHON, "-m", "pip", "--python", binaries / "python", "install", "--quiet"]
    _run([*pip, "-c", CONSTRAINTS, "-c", TORCH, wheel], folder)
    return binaries


def _run(command: list[str | Path], folder: Path) -> str:
    """What a command prints in a folder; one that fails ends the check."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    shown = " ".join(part.name if isinstance(part, Path) else part for part in command)
    print(f"{time.monotonic() - began:6.1f} s  {shown}", flush=True)
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nfailed with status {done.returncode}: {shown}")
    return done.stdout


def _write_texts(folder: Path) -> None:
    """Text to pretrain on, labelled rows to fine-tune on, and rows to predict."""
    chance = random.Random(0)
    labels = list(OPINIONS)

    def sentence(label: str) -> str:
        return f"{chance.choice(SUBJECTS)} {chance.choice(OPINIONS[label])}."

    documents = (
        "\n".join(sentence(chance.choice(labels)) for _ in range(8)) for _ in range(DOCUMENTS)
    )
    (folder / "text.txt").write_text("\n\n".join(documents) + "\n")
    rows = [(sentence(labels[row % 2]), labels[row % 2]) for row in range(ROWS)]
    _write_csv(folder / "train.csv", [("text", "label"), *rows])
    _write_csv(folder / "new.csv", [("text",), *((text,) for text, _ in rows)])


def _write_csv(path: Path, rows: list[tuple[str, ...]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def _check_predictions(path: Path) -> None:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    if len(records) != ROWS or any(record["label"] not in OPINIONS for record in records):
        raise SystemExit(f"expected {ROWS} labels out of {list(OPINIONS)}, found {records}")


if __name__ == "__main__":
    main()
