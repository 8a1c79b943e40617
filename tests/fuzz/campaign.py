"""Many mutants through one surface, each in bounds: 20 seconds, 2 GB, one sentence, no other file.

Mutants run in a child that was forked when everything was imported and the sound files written, so
that one costs milliseconds; a mutant that kills or hangs the child is told by the number which the
child sent before, and a new child goes on behind it.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from unittest import mock

from litebert.base.errors import LONGEST_MESSAGE, LitebertError
from litebert.base.files import MANIFEST
from litebert.cli import main
from tests.fuzz.surfaces import SURFACES, Surface, mutants

SECONDS, MEMORY = 20.0, 2 * 2**30
PATIENCE = 6 * SECONDS  # a child that waits for something has no time of its own
COMMANDS = 25  # every so many mutants also goes through the command line, in this process,
PROCESSES = 500  # and every so many in a process of its own
USAGE = 2  # the exit code of a user's mistake


@dataclass
class Tally:
    """What came of a surface's mutants."""

    tries: int = 0
    refused: int = 0
    findings: dict[int, str] = field(default_factory=dict)  # mutant -> what went wrong


def run(name: str, tries: int, seed: int, scratch: Path, first: int = 0) -> Tally:
    """Try so many mutants of a surface."""
    folder = scratch / name.replace(" ", "-")
    folder.mkdir(parents=True)
    surface, tally, number = SURFACES[name], Tally(), first
    surface.build(folder)
    surface.use(folder, scratch / "out")  # what is sound must be accepted
    shutil.rmtree(scratch / "out", ignore_errors=True)
    shutil.copytree(folder, scratch / "sound")
    while number < first + tries:
        number = _child_from(number, first + tries, name, seed, scratch, tally)
        if number < first + tries:  # the child is gone: its files are in any state
            shutil.rmtree(folder)
            shutil.copytree(scratch / "sound", folder)
    return tally


def _child_from(number: int, end: int, name: str, seed: int, scratch: Path, tally: Tally) -> int:
    """A child that tries mutants as long as it lives; the number to go on from."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    arguments = (theirs, number, end, name, seed, scratch)
    child = context.Process(target=_work, args=arguments)
    child.start()
    theirs.close()
    problem = f"took more than {SECONDS:.0f} seconds"
    try:
        while _answers(ours, child.pid or 0):
            refused, finding = ours.recv()
            tally.tries, tally.refused = tally.tries + 1, tally.refused + refused
            if finding:
                tally.findings[number] = finding
            number += 1
    except EOFError:
        child.join()
        if number == end:
            return end
        problem = f"ended the process ({child.exitcode})"
    child.kill()
    child.join()
    tally.tries += 1
    tally.findings[number] = problem
    return number + 1


def _answers(ours: Connection, child: int) -> bool:
    """Wait for the next mutant's end: on a busy machine by the child's own time."""
    before, waited = _processor_seconds(child), 0.0
    while not ours.poll(1.0):
        waited += 1.0
        if _processor_seconds(child) - before > SECONDS or waited > PATIENCE:
            return False
    return True


def _processor_seconds(child: int) -> float:
    numbers = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def _work(told: Connection, number: int, end: int, name: str, seed: int, scratch: Path) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    warnings.simplefilter("error")
    surface, folder = SURFACES[name], scratch / name.replace(" ", "-")
    for mutant in range(number, end):
        told.send(_try(surface, folder, scratch, random.Random(f"{seed} {name} {mutant}")))


def _try(
    surface: Surface, folder: Path, scratch: Path, chance: random.Random
) -> tuple[bool, str | None]:
    """Whether a mutant was refused, and what is wrong about that, if anything is."""
    sound = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for path, content in mutants(folder, surface, chance).items():
        path.write_bytes(content)
    if surface.prepare is not None:
        surface.prepare(folder, chance)
    try:
        refused, finding = _call(surface, folder, scratch / "out")
        if finding is None and surface.command is not None and chance.random() < 1 / COMMANDS:
            arguments = surface.command(folder, scratch / "cli")
            apart = chance.random() < COMMANDS / PROCESSES
            finding = _process(arguments) if apart else _command(arguments)
        return refused, finding or _strays(folder, scratch, sound)
    finally:
        for path, content in sound.items():
            if not path.is_file() or path.read_bytes() != content:
                path.write_bytes(content)
        for name in ("out", "out.partial", "cli"):
            shutil.rmtree(scratch / name, ignore_errors=True)
        for name in ("out.png", "cli.png"):
            (scratch / name).unlink(missing_ok=True)


def _call(surface: Surface, folder: Path, out: Path) -> tuple[bool, str | None]:
    try:
        surface.use(folder, out)
    except LitebertError as error:
        return True, _unreadable(str(error))
    except Exception:
        return False, traceback.format_exc(limit=-4)
    return False, None


def _unreadable(message: str) -> str | None:
    whole = message and len(message) <= LONGEST_MESSAGE and message.isprintable()
    return None if whole else f"not a sentence: {message!r}"


def _process(arguments: list[str]) -> str | None:
    """The command line as it is: 0, or 2 with one sentence."""
    command = [sys.executable, "-m", "litebert", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return _misbehaved(arguments, done.returncode, done.stderr)


def _misbehaved(arguments: list[str], code: object, said: str) -> str | None:
    if code == 0 or (code == USAGE and said.count("\n") == 1):
        return None
    return f"{arguments[0]}: exit code {code}, said {said[:300]!r}"


def _command(arguments: list[str]) -> str | None:
    """The same in this process, which is quicker."""
    printed, said = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        mock.patch.object(sys, "argv", ["litebert", *arguments]),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(said),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except Exception:
            return f"{arguments[0]}: {traceback.format_exc(limit=-4)}"
    return _misbehaved(arguments, code, said.getvalue())


def _strays(folder: Path, scratch: Path, sound: dict[Path, bytes]) -> str | None:
    """A file that nobody asked for."""
    allowed = {"out", "out.png", "out.partial", "cli", "cli.png", "sound", folder.name}
    stray = {path.name for path in scratch.iterdir()} - allowed
    stray |= {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path not in sound and path.name != MANIFEST
    }
    return f"wrote {min(stray)}" if stray else None


def campaign(names: list[str], tries: int, seed: int, scratch: Path) -> Iterator[tuple[str, Tally]]:
    """All surfaces in turn, the tries spread over them."""
    os.environ["LITEBERT_CACHE"] = str(scratch / "cache")
    for place, name in enumerate(names):
        share = tries // len(names) + (place < tries % len(names))
        yield name, run(name, share, seed, scratch / str(place))
        shutil.rmtree(scratch / str(place))
