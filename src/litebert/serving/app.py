"""The application: routes, errors, and the gate around them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from litebert.serving import compatible, pages, routes, tools
from litebert.serving.direct import Direct, invalid
from litebert.serving.gate import Door, Gate
from litebert.serving.monitoring import Monitoring
from litebert.serving.problems import Problem, response_to
from litebert.serving.served import ServedModel


def create_app(
    models: Mapping[str, ServedModel], door: Door, monitoring: Monitoring, runs: Path | None = None
) -> Gate:
    """Everything that the service answers, behind its gate."""
    app = FastAPI(
        title="litebert", version=version("litebert"), docs_url=None, redoc_url=None,
        description="Small language encoders over HTTP.",
    )  # fmt: skip
    app.state.models, app.state.door, app.state.runs = models, door, runs
    app.state.monitoring = monitoring
    monitoring.watch_inside(lambda: door.inside)
    asked = (routes.router, tools.router, compatible.openai, compatible.tei)
    for router in (*asked, pages.health, pages.router):
        app.include_router(router)
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    return Gate(Direct(app, asked), door, monitoring)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return response_to(error, request.url.path)


async def _invalid(request: Request, error: Exception) -> Response:
    """A path or a query; bodies are looked at in direct.py."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    steps = [step for step in first["loc"] if step not in ("body", "query", "path")]
    return response_to(invalid(steps, str(first["msg"])), request.url.path)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = response_to(Problem(error.status_code, str(error.detail)), request.url.path)
    response.headers.update(error.headers or {})  # which methods a path allows
    return response
