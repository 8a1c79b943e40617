"""What can go wrong, as a tree. A user sees one sentence; a program can catch a branch.

    LitebertError                 anything a user can put right; the command line exits with 2
    ├── SettingsError             a preset, a TOML file, a --set, or values that do not fit together
    ├── FileError                 a file that is missing, damaged, unsafe or in the way
    │   └── FormatError           a whole, readable file that is not what it should be
    ├── MissingExtraError         an optional dependency is not installed
    ├── InputError                a text that a model cannot be asked about
    ├── DeadlineError             a request that was not answered in time
    ├── ClosedError               a request to an engine that was closed
    └── DivergedError             the loss is NaN or infinite

A message says what, where, the value, and what to do. Mistakes of our own are `assert`s.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LitebertError(Exception):
    """Anything a user can put right."""


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
    near = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known: " + ", ".join(choices)
