"""POST routes on the short way: the body's bytes into its schema, the endpoint, the answer.

FastAPI holds the routes and describes them in /openapi.json. What it does for a request (matching
every route, solving dependencies, JSON to Python values and those to a schema) takes as long as a
short text takes in a small encoder, so known routes are looked up in a table instead. All else,
pages and GET, is FastAPI's.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, get_type_hints

from fastapi import APIRouter, FastAPI, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from litebert.serving.problems import Problem, response_to

MODELS = "/v1/models/"


@dataclass(frozen=True)
class _Route:
    path: str  # as metrics name it
    endpoint: Callable[..., Awaitable[Response]]
    schema: type[BaseModel]
    takes_request: bool


class Direct:
    """The ASGI layer between the gate and FastAPI."""

    def __init__(self, app: FastAPI, routers: Iterable[APIRouter]) -> None:
        self.app = app
        self._routes = dict(_posted(routers))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        found = self._find(scope) if scope["type"] == "http" else None
        if found is None:
            await self.app(scope, receive, send)
            return
        route, arguments = found
        scope["app"], scope["route"] = self.app, route
        request = Request(scope, receive)
        try:
            body = _parsed(route.schema, await _json_bytes(request))
            given = (request,) if route.takes_request else ()
            response = await route.endpoint(*given, *arguments, body)
        except Problem as problem:
            response = response_to(problem, scope["path"])
        await response(scope, receive, send)

    def _find(self, scope: Any) -> tuple[_Route, tuple[str, ...]] | None:
        """The route of a path, and the model's name where the path has one."""
        path: str = scope["path"]
        if scope["method"] != "POST":
            return None
        if path in self._routes:
            return self._routes[path], ()
        name, slash, ask = path.removeprefix(MODELS).partition("/")
        route = self._routes.get(f"{MODELS}{{name}}/{ask}")
        if route is None or not name or not slash or not path.startswith(MODELS):
            return None
        return route, (name,)


def _posted(routers: Iterable[APIRouter]) -> Iterable[tuple[str, _Route]]:
    for router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute) and "POST" in (route.methods or ()):
                schema = get_type_hints(route.endpoint)["body"]
                takes_request = "request" in inspect.signature(route.endpoint).parameters
                yield route.path, _Route(route.path, route.endpoint, schema, takes_request)


async def _json_bytes(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Problem(415, "send JSON, with Content-Type: application/json")
    return await request.body()


def _parsed(schema: type[BaseModel], content: bytes) -> BaseModel:
    """The first thing that is wrong is said with its field's name; what was sent is not."""
    try:
        return schema.model_validate_json(content)
    except ValidationError as error:
        # A million wrong inputs are a million errors; one is told.
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        raise Problem(400, "the body is not JSON")
    raise invalid(first["loc"], first["msg"])


def invalid(steps: Iterable[Any], message: str) -> Problem:
    """A field that is wrong."""
    field = ".".join(str(step) for step in steps)[:200] or None
    said = message[:200]
    return Problem(422, f"{field}: {said}" if field else said, field)
