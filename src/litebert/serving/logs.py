"""The service's log: lines or JSON on standard error.

Lines of requests are written a few at a time. A write lets go of Python's lock, and to get it back
the event loop waits for the thread that computes: a line a request would cost as much as the rest
of the request's way through HTTP.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from typing import Any

from litebert.base.errors import SettingsError

STAMP, PLAIN = "%Y-%m-%dT%H:%M:%S", re.compile(r"[\w./:-]+")
SOON = 0.1  # seconds that a line may wait for others


def set_up_log(log_format: str) -> None:
    """Lines or JSON, for the service and for uvicorn."""
    formatters = {"lines": LineFormatter, "json": JSONFormatter}
    if log_format not in formatters:
        raise SettingsError(f"--log-format {log_format}: choose {' or '.join(formatters)}")
    handler = GatheringHandler(sys.stderr)
    handler.setFormatter(formatters[log_format]())
    for name in ("litebert.serving", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "litebert.serving" else logging.WARNING)


class GatheringHandler(logging.StreamHandler[Any]):
    """Writes lines together, soon; what is more than information, and all at the end, at once."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.lines: list[str] = []
        self.planned = False

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record) + "\n")
        if record.levelno > logging.INFO:
            self.write_out()
        elif not self.planned:
            try:
                asyncio.get_running_loop().call_later(SOON, self.write_out)
                self.planned = True
            except RuntimeError:  # no event loop runs, or none any more
                self.write_out()

    def write_out(self) -> None:
        """Write what was gathered."""
        lines, self.lines, self.planned = self.lines, [], False
        self.stream.write("".join(lines))
        self.stream.flush()

    def close(self) -> None:
        if self.lines:
            self.write_out()
        super().close()


class LineFormatter(logging.Formatter):
    """`request id=… method=… …`"""

    _second, _stamp = -1, ""  # the last time that was written out

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        said = " ".join([f"{name}={_plain(value)}" for name, value in fields.items()])
        if int(record.created) != self._second:
            self._second, self._stamp = int(record.created), self.formatTime(record, STAMP)
        text = f"{self._stamp} {record.levelname.lower()} {record.getMessage()} {said}".rstrip()
        return text + ("\n" + self.formatException(record.exc_info) if record.exc_info else "")


class JSONFormatter(logging.Formatter):
    """A JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        content = {
            "time": self.formatTime(record, STAMP),
            "level": record.levelname.lower(), "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }  # fmt: skip
        if record.exc_info:
            content["exception"] = self.formatException(record.exc_info)
        return json.dumps(content)


def _plain(value: Any) -> str:
    if not isinstance(value, str):
        return str(value)
    return value if PLAIN.fullmatch(value) else json.dumps(value)
