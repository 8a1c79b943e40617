"""What can go wrong, as a tree. A user sees one sentence; a program can catch a branch.

    LitebertError                 anything a user can put right; the command line exits with 2
    ├── SettingsError             a preset, a TOML file, a --set, or values that do not fit together
    ├── FileError                 a file that is missing, damaged, unsafe or in the way
    │   └── FormatError           a whole, readable file that is not what it should be
    ├── MissingExtraError         an optional dependency is not installed
    ├── InputError                a text that a model cannot be asked about
    ├── DeadlineError             a request that was not answered in time
    ├── ClosedError               a request to an engine that was closed
    ├── LostRankError             another process of a run is gone
    └── DivergedError             the loss is NaN or infinite

A message says what, where, the value, and what to do. Mistakes of our own are `assert`s.
Values come from files of anyone's: a message is one line of printable characters, and of a long one
the middle is left out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST_MESSAGE = 500  # characters
_TAIL = 180  # of a long message: what to do about it


class LitebertError(Exception):
    """Anything a user can put right."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(message: str) -> str:
    """A message as it may be printed: one line, no control characters, the middle left out."""
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - _TAIL - 3] + " … " + message[-_TAIL:]
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in message)


class SettingsError(LitebertError):
    """A setting that is unknown, malformed, or at odds with another."""


class FileError(LitebertError):
    """A file that is missing, damaged, unsafe or in the way."""


class FormatError(FileError):
    """A readable file whose content is not what it should be."""


class MissingExtraError(LitebertError):
    """An optional dependency is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed; "
            f"run `pip install 'litebert[{extra}]'`"
        )
        self.names = (package, extra, purpose)

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        """So that it crosses from a worker process to the one that tells the user."""
        return type(self), self.names


class DivergedError(LitebertError):
    """Training whose loss is NaN or infinite."""


class LostRankError(LitebertError):
    """Another process of a run is gone, or cannot be reached."""


class InputError(LitebertError):
    """A text, a pair or a question that a model cannot be asked about."""


class DeadlineError(LitebertError):
    """A request that was not answered in time."""


class ClosedError(LitebertError):
    """A request to an engine that was closed."""


def lost_worker() -> LitebertError:
    """What to say when a process of ours was killed; finished work is kept."""
    return LitebertError(
        "a worker process was killed, perhaps for want of memory; run the same command to resume"
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A tail for an error message: the nearest known word, or all of them when none is near."""
    choices = sorted(known)
    near = difflib.get_close_matches(word[:LONGEST_MESSAGE], choices, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known: " + ", ".join(choices)
