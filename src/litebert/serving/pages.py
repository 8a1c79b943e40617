"""The playground's files, and health and metrics: what is asked without a model."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from litebert.serving.monitoring import CONTENT_TYPE
from litebert.serving.problems import Problem

FOLDER = Path(__file__).parent / "playground"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
router = APIRouter(include_in_schema=False)
health = APIRouter(tags=["health"])


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Content, type and ETag by name; only what is in this table can be asked for."""
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in TYPES:
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            found[path.relative_to(FOLDER).as_posix()] = (content, TYPES[path.suffix], tag)
    return found


def _page(request: Request, name: str) -> Response:
    if name not in _files():
        raise Problem(404, f"no page {name[:80]!r}")
    content, kind, tag = _files()[name]
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(b"", 304, headers)
    return Response(content, 200, headers, f"{kind}; charset=utf-8")


@router.get("/")
async def playground(request: Request) -> Response:
    """The page."""
    return _page(request, "index.html")


@router.get("/docs")
async def documentation(request: Request) -> Response:
    """The routes as a page."""
    return _page(request, "docs.html")


@router.get("/playground/{name:path}")
async def file(request: Request, name: str) -> Response:
    """A part of a page."""
    return _page(request, name)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """What Prometheus reads."""
    return Response(request.app.state.monitoring.text(), media_type=CONTENT_TYPE)


@health.get("/health/live")
async def live() -> dict[str, str]:
    """Whether the process runs."""
    return {"status": "live"}


@health.get("/health/ready")
async def ready(request: Request) -> Response:
    """200 once every model has answered its first question; 503 before, and while stopping."""
    door = request.app.state.door
    state = "stopping" if door.stopping else "ready" if door.ready else "warming up"
    status = 200 if state == "ready" else 503
    return Response(f'{{"status":"{state}"}}', status, media_type="application/json")


@health.get("/health")
async def health_of_tei(request: Request) -> Response:
    """As text-embeddings-inference has it: the same as /health/ready."""
    return await ready(request)
