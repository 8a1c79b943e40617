"""Run the commands and the Python of README.md and docs/*.md as they are written.

    python docs/run_commands.py [--page docs/finetuning.md] [--folder DIR]

Every page has a folder of its own, with the example texts and what a reader of README.md has made
by then. Only times are cut (30m becomes 15s), because a page is to be run and not to be waited for.
What needs more than this machine (a cluster, a bucket, GLUE) is listed as not run, with the reason.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Pages, the language of their examples, and what README.md's own commands have made before.
PAGES = {
    "README.md": ("en", ()),
    "README.ko.md": ("ko", ()),
    "README.ja.md": ("ja", ()),
    "docs/text.md": ("en", ()),
    "docs/pretraining.md": ("en", ("corpus",)),
    "docs/finetuning.md": ("en", ("corpus", "run")),
    "docs/inference.md": ("en", ("corpus", "run", "tuned")),
    "docs/interop.md": ("en", ("corpus", "run", "tuned")),
    "docs/planning.md": ("en", ("corpus",)),
    "docs/distillation.md": ("en", ("run",)),
    "docs/serving.md": ("en", ("run", "tuned")),
    "docs/scale.md": ("en", ("corpus", "run")),
    "docs/reproduction.md": ("en", ("corpus",)),
}
NEEDS = {
    r"^make |^pip install": "installs or is another target",
    r"s3://|raw/\*": "needs a bucket or a cluster's disk",
    r"10\.0\.0\.1|^ray |RAY_|SLURM": "needs a cluster",
    r"glue|cola": "needs GLUE",
    r"--data DATA": "needs the tasks' data",
    r"ckpt-best": "needs a TensorFlow checkpoint",
    r"OpenAI|InferenceClient": "needs a running service; tests/serving/test_clients.py has it",
    r"serve --demo": "trains for a minute; tests/serving has it",
    r"reproduce .*--budget \d+[mh]": "takes minutes at least; tests/reproduction has a small table",
}
COMMAND = re.compile(r"(litebert|torchrun|cp|mkdir|echo|make|pip|ray|export) ")
TIMES = re.compile(r"(--budget |budget=\"|budget = \")\d+(m|h)\b")
SHORT = "15s"
LONG_RUNS = re.compile(r"--budget 10Mtok")
PATIENCE = 900  # seconds


@dataclass(frozen=True)
class Step:
    """A command of the shell, or a block of Python."""

    text: str
    is_python: bool = False

    @property
    def reason(self) -> str | None:
        """Why it is not run."""
        return next((why for what, why in NEEDS.items() if re.search(what, self.text)), None)


def steps_of(page: Path) -> Iterator[Step]:
    """The steps of a page in their order; what commands print and file listings are none."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    for language, block in blocks:
        if language == "python":
            yield Step(block, is_python=True)
        elif language == "":
            for line in block.replace("\\\n", " ").splitlines():
                if COMMAND.match(line) and not line.startswith("litebert: "):
                    yield Step(line.partition("  #")[0].strip())


def set_up(folder: Path, language: str, made: tuple[str, ...], first: Path) -> Path:
    """The place where a page's commands are run."""
    shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")
    place = folder / "runs" / "first"
    shutil.copytree(ROOT / "docs" / "examples" / language, place)
    for name in made:
        shutil.copytree(first / name, place / name)
    _write_files(place)
    return place


def _write_files(place: Path) -> None:
    """The reader's own files that pages speak of."""
    head, *rows = (place / "reviews.csv").read_text("utf-8").splitlines()
    lines = (place / "visits.txt").read_text("utf-8").splitlines()
    texts = [line for line in lines if line.strip()]
    labelled = [f"{'good' if n % 2 else 'bad'}\t{text}" for n, text in enumerate(texts[:80])]
    files = {
        "my.csv": [head.replace("text", "body").replace("label", "stars"), *rows],
        "my.tsv": labelled, "train.csv": [head, *rows[::2]], "dev.csv": [head, *rows[1::2]],
        "notes.txt": texts[:20], "more.txt": texts[20:200],
    }  # fmt: skip
    for name, content in files.items():
        (place / name).write_text("\n".join(content) + "\n", "utf-8")
    with gzip.open(place / "wiki.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in lines if text)
    if (place / "run").is_dir():  # stands for a teacher, and for a folder of transformers
        for name in ("minilm", "path/to/huggingface-folder"):
            shutil.copytree(place / "run" / "model", place / name)
        config = place / "path/to/huggingface-folder" / "config.json"  # theirs have this GELU
        config.write_text(config.read_text().replace('"gelu"', '"gelu_new"'))
        (config.parent / "manifest.json").unlink()
    (place / "runs").mkdir()


def cut(text: str) -> str:
    """The same with short times."""
    return LONG_RUNS.sub("--budget 100ktok", TIMES.sub(lambda found: found[1] + SHORT, text))


def run(step: Step, place: Path) -> str | None:
    """What went wrong, if anything did."""
    text = cut(step.text)
    if step.is_python:
        command = [sys.executable, "-c", "import litebert\n" + text]
    else:
        command = [
            "bash",
            "-c",
            f"set -e; exec 2>&1; PATH={Path(sys.executable).parent}:$PATH; {text}",
        ]
    if re.match("litebert serve", text):
        return _serve(command, place)
    try:
        done = subprocess.run(
            command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"not finished after {PATIENCE} s"
    return None if done.returncode == 0 else done.stdout[-1500:]


def _serve(command: list[str], place: Path) -> str | None:
    """A service ends when it is told to; it is told as soon as it is ready."""
    command[-1] = command[-1].replace("; litebert serve", "; exec litebert serve")
    said = ""
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            if line.startswith("ready"):
                process.send_signal(signal.SIGTERM)
    return None if process.returncode == 0 and "ready" in said else said[-1500:]


def run_page(name: str, scratch: Path) -> int:
    """Every step of a page; how many failed."""
    language, made = PAGES[name]
    folder = scratch / name.replace("/", "-")
    first = scratch / "README.md" / "runs" / "first"
    place = set_up(folder, language, made, first)
    failed = 0
    for step in steps_of(ROOT / name):
        title = step.text.strip().splitlines()[0 if not step.is_python else -1][:110]
        if re.match(r"mkdir -p runs && cp -r", step.text):  # set_up has done it
            continue
        if step.reason:
            print(f"  not run ({step.reason}): {title}")
            continue
        if step.is_python and name.startswith("README"):  # "in a fresh copy of that folder"
            place = set_up(folder / "python", language, made, first)
        started = time.monotonic()
        problem = run(step, place)
        verdict = "ok" if problem is None else "FAILED"
        print(f"  {verdict} {time.monotonic() - started:5.0f} s  {title}", flush=True)
        if problem is not None:
            failed += 1
            print("    " + problem.replace("\n", "\n    "))
    return failed


def main() -> None:
    """Every page, or those that were named; README.md always, as the others stand on it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--page", action="append", choices=PAGES, help="all, unless some are named")
    parser.add_argument("--folder", type=Path, help="keep what is made here, and what is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = options.folder or Path(temporary)
        failed = 0
        for name in PAGES:
            is_asked = not options.page or name in options.page or name == "README.md"
            if not is_asked or (scratch / name.replace("/", "-")).exists():
                continue
            print(name, flush=True)
            failed += run_page(name, scratch)
    print(f"{failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
