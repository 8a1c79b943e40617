"""`litebert serve tuned`: models over HTTP, with a playground. Nothing is loaded from elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import signal
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from litebert.base.errors import FileError, InputError, MissingExtraError, SettingsError
from litebert.base.settings import parse_overrides
from litebert.inference.engine import Engine
from litebert.model.folder import CONFIG, MODEL, find_model_folder
from litebert.tasks.readers.text_file import Say, quiet

if TYPE_CHECKING:
    from litebert.serving.served import ServedModel

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PRECISIONS = ("auto", "fp32", "bf16", "int8")
# Python hands its lock from thread to thread at most so often. With its own 5 ms the thread that
# computes waits for the event loop between two layers for as long as a layer takes.
SWITCH_SECONDS = 0.0005
WARM_UP_TEXT = "The ferry was late, but the crossing was calm."


@dataclass(frozen=True)
class Wanted:
    """A model to serve, as the command line names it: [NAME=]FOLDER[@PRECISION]."""

    name: str
    folder: Path
    precision: str


def serve(
    models: Sequence[str | Path] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    precision: str = "auto",
    exit: str | None = None,
    threads: int | None = None,
    api_key_file: str | Path | None = None,
    runs: str | Path | None = None,
    log_format: str = "lines",
    overrides: Sequence[str] = (),
    say: Say = quiet,
) -> None:
    """Serve models over HTTP, with a playground at /; runs until it is stopped.

    Routes for every kind of task, embeddings as OpenAI's and text-embeddings-inference's clients
    ask for them, metrics for Prometheus: docs/serving.md. Ctrl-C or SIGTERM finishes what is in
    flight.

    Example: litebert serve tuned

    Example: litebert serve exact=tuned@fp32 small=tuned@int8 --port 9000 --runs runs

    Args:
        models: Runs or model folders; each is served by its folder's name, or by another as
            name=folder, and in another precision as folder@int8.
        host: The address to listen on; others than this machine need 0.0.0.0, and a key.
        port: The port to listen on; 0 for any free one.
        precision: auto, fp32, bf16 or int8, for models that do not say their own.
        exit: An exit rule for all models that were fine-tuned with exits: patience=3,
            confidence=0.95, accuracy=-0.5.
        threads: Threads of the matrix products, in all.
        api_key_file: Keys, one a line, one of which every request must have; only its owner may
            be able to read the file.
        runs: A folder of training runs, for the playground to show.
        log_format: lines or json.
        overrides: Limits to change: concurrent_requests, queued_tokens, inputs, characters,
            body_bytes, body_seconds, header_seconds, deadline, stop_seconds, as "inputs=100".
        say: Told what the user should know, a sentence each.
    """
    _check_extra()
    from litebert.serving.app import create_app
    from litebert.serving.gate import Door
    from litebert.serving.limits import Limits
    from litebert.serving.listener import bind, listen
    from litebert.serving.logs import set_up_log
    from litebert.serving.monitoring import Monitoring
    from litebert.serving.served import ServedModel

    limits = Limits.build(parse_overrides(overrides), "limits")
    wanted = _wanted(models, precision)
    keys = () if api_key_file is None else read_keys(Path(api_key_file))
    watched = None if runs is None else _folder(Path(runs))
    set_up_log(log_format)
    sys.setswitchinterval(SWITCH_SECONDS)
    listener = bind(host, port)
    monitoring, door = Monitoring(), Door(limits, keys)
    served: dict[str, ServedModel] = {}
    for one in wanted:
        engine = Engine(one.folder, one.precision, exit=exit, threads=threads)
        served[one.name] = ServedModel(one.name, engine, limits, monitoring)
        say(f"{one.name}: {one.folder}, {engine.precision}")
    address = f"http://{host}:{listener.getsockname()[1]}"
    if host not in LOOPBACK and not keys:
        say(f"warning: {host} can be reached from outside, and no key is asked (--api-key-file)")

    async def listening() -> None:
        say(f"listening: {address}/")

        async def get_ready() -> None:
            for model in served.values():
                await asyncio.to_thread(warm, model.engine)
            gc.collect()
            gc.freeze()  # what is there now stays: looking through it again would hold up requests
            door.ready = True
            say(f"ready: {address}/ (playground), {address}/docs (routes)")
            say(f"try: {example(address, next(iter(served.values())))}")

        def end_if_failed(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and task.exception() is not None:
                signal.raise_signal(signal.SIGTERM)  # it would never be ready, and never say so

        warming.append(asyncio.create_task(get_ready()))
        warming[0].add_done_callback(end_if_failed)

    warming: list[asyncio.Task[None]] = []  # so that the task is not collected
    try:
        listen(create_app(served, door, monitoring, watched), listener, listening)
        for task in warming:
            if task.done() and not task.cancelled():
                task.result()  # raises what warming up failed of
    finally:
        for model in served.values():
            model.engine.close()


def warm(engine: Engine) -> None:
    """A first computation: kernels are chosen and memory is taken now, not by a user's request."""
    engine.embed([WARM_UP_TEXT, WARM_UP_TEXT * 8])
    if engine.task is not None:
        with contextlib.suppress(InputError):  # too long for this model, perhaps
            engine.submit(engine.task.example_input).result()


def example(address: str, model: ServedModel) -> str:
    """A command that shows the service at work."""
    task = model.engine.task
    route, given = ("embed", WARM_UP_TEXT) if task is None else ("predict", task.example_input)
    body = json.dumps({"inputs": given}, ensure_ascii=False).replace("'", "'\\''")
    return (
        f"curl -s {address}/v1/models/{model.name}/{route} "
        f"-H 'Content-Type: application/json' -d '{body}'"
    )


def _wanted(models: Sequence[str | Path], precision: str) -> list[Wanted]:
    if not models:
        raise SettingsError("name at least one model folder, or --demo for one of film reviews")
    found: dict[str, Wanted] = {}
    for text in map(str, models):
        name, equals, rest = text.partition("=")
        folder, at, own = (rest if equals else text).rpartition("@")
        if at and own not in PRECISIONS and Path(folder).is_dir() and not Path(text).exists():
            raise SettingsError(f"{text}: {own!r} is no precision; {', '.join(PRECISIONS)} are")
        if not at or own not in PRECISIONS:
            folder, own = (rest if equals else text), precision
        path = find_model_folder(Path(folder))
        if not path.is_dir():
            raise FileError(f"{folder}: no such model folder")
        if not (path / CONFIG).is_file():
            raise FileError(f"{folder}: no model folder and no run; it has no {CONFIG}")
        resolved = path.resolve()
        shown = resolved.parent.name if resolved.name == MODEL else resolved.name
        name = name if equals else shown
        if name in found:
            raise SettingsError(
                f"two models are called {name!r}; give one another name: other={folder}"
            )
        if not name or not all(c.isalnum() or c in "._-" for c in name):
            raise SettingsError(f"{name!r}: a model's name has letters, digits and . _ - only")
        found[name] = Wanted(name, path, own)
    return list(found.values())


def read_keys(path: Path) -> tuple[bytes, ...]:
    """The keys of a file that nobody else may read."""
    try:
        mode, content = path.stat().st_mode, path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from None
    if stat.S_IMODE(mode) & 0o077:
        raise FileError(f"{path}: others may read it; run chmod 600 {path}")
    lines = [line.strip() for line in content.splitlines()]
    keys = tuple(line for line in lines if line and not line.startswith(b"#"))
    if not keys:
        raise FileError(f"{path}: holds no key; write one a line")
    return keys


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise FileError(f"--runs {path}: no such folder")
    return path


def _check_extra() -> None:
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
        import uvloop  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(str(error.name), "serve", "litebert serve") from None
