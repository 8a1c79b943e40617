"""URLs, the file systems behind them, and what to do when they do not answer.

s3://, gs://, hdfs:// and http(s):// are opened by fsspec. A `Path` of a URL keeps one of its two
slashes, so both spellings are URLs here.

Whatever may pass by itself (a connection that is reset, a server that is busy, a body cut short) is
tried again a bounded number of times, with a word on standard error; what will not (no such bucket,
credentials refused) is said at once, in one sentence.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from litebert.base.errors import FileError, LitebertError, MissingExtraError, one_line

Result = TypeVar("Result")

ATTEMPTS = 6
FIRST_WAIT = 0.5  # seconds, doubled after each attempt
PACKAGES = {
    "s3": "s3fs", "gs": "gcsfs", "hdfs": "pyarrow", "http": "aiohttp", "https": "aiohttp",
    "memory": "fsspec",
}  # fmt: skip
# botocore would try again by itself, in silence; a server that says nothing is given up.
_S3 = {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 0}}
OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {"config_kwargs": _S3, "use_listings_cache": False, "default_fill_cache": False},
    "gs": {"use_listings_cache": False},
}
_URL = re.compile(rf"({'|'.join(PACKAGES)}):/{{1,2}}(?=[^/])")
_PERMANENT = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound")
_log = logging.getLogger("litebert")


def as_url(name: str | Path) -> str | None:
    """The URL that a name is; None for the name of a file here."""
    text = os.fspath(name)
    match = _URL.match(text)
    return f"{match[1]}://{text[match.end() :].rstrip('/')}" if match else None


def scheme_of(url: str) -> str:
    """`s3` of `s3://bucket/key`."""
    return url.partition(":")[0]


def join(url: str, *parts: str) -> str:
    """What is below a URL."""
    return "/".join([url.rstrip("/"), *parts])


def filesystem(url: str) -> tuple[Any, str]:
    """fsspec's file system of a URL, and the URL's path in it."""
    scheme = scheme_of(url)
    try:
        from fsspec.core import url_to_fs

        found, path = url_to_fs(url, **OPTIONS.get(scheme, {}))
    except ImportError:
        raise MissingExtraError(PACKAGES[scheme], "remote", f"opening {scheme}://") from None
    except Exception as error:  # of hdfs:// without its library, of a malformed URL
        raise FileError(f"{url}: cannot be opened ({_reason(error)})") from None
    found.retries = 1  # s3fs's own, which are silent
    return found, path


def patiently(url: str, action: Callable[[], Result]) -> Result:
    """The result of an action, tried again while its failure may pass."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return action()
        except LitebertError:
            raise
        except Exception as error:
            if attempt == ATTEMPTS or not _may_pass(error):
                raise refusal(url, error, attempt) from None
            wait = FIRST_WAIT * 2 ** (attempt - 1)
            _log.warning(
                "%s",
                one_line(
                    f"{url}: {_reason(error)}; trying again in {wait:g} s "
                    f"({attempt} of {ATTEMPTS - 1})"
                ),
            )
            time.sleep(wait)
    raise AssertionError


def _may_pass(error: Exception) -> bool:
    if isinstance(error, _PERMANENT) or type(error).__name__ in _CREDENTIALS:
        return False
    local = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
    return not (isinstance(error, OSError) and error.errno in local)


def refusal(url: str, error: Exception, attempts: int = 1) -> FileError:
    """What to tell a user about a failure."""
    tried = f" after {attempts} attempts" if attempts > 1 else ""
    if isinstance(error, FileNotFoundError):
        return FileError(f"{url}: no such file, folder or bucket")
    if isinstance(error, PermissionError) or type(error).__name__ in _CREDENTIALS:
        return FileError(
            f"{url}: access refused ({_reason(error)}); set the credentials of its store, for s3 "
            "as for Amazon's own tools"
        )
    return FileError(f"{url}: cannot be reached or read{tried} ({_reason(error)})")


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:200] if text else type(error).__name__
