"""What is said when a request is not answered: a status, a type, one sentence, perhaps a field."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

# text-embeddings-inference's clients expect its own form on its own routes.
TEI_ROUTES = frozenset({"/embed", "/predict", "/rerank", "/similarity"})
TEI_TYPES = {
    413: "Validation", 415: "Validation", 422: "Validation", 400: "Validation", 404: "Validation",
    401: "Unauthorized", 429: "Overloaded", 503: "Unhealthy", 504: "Overloaded",
}  # fmt: skip
TYPES = {
    400: "malformed", 401: "unauthorized", 404: "not_found", 405: "method_not_allowed",
    408: "request_timeout", 413: "body_too_large", 415: "unsupported_media_type", 422: "invalid",
    429: "overloaded", 500: "internal", 503: "unavailable", 504: "deadline_exceeded",
}  # fmt: skip


@dataclass
class Problem(Exception):
    """Raised anywhere below a route; becomes the response."""

    status: int
    message: str
    field: str | None = None
    retry_after: int | None = None


def response_to(problem: Problem, path: str) -> Response:
    """The problem as JSON, in the form that the route's clients know."""
    headers = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = json.dumps(_body(problem, path), ensure_ascii=False)
    return Response(body.encode("utf-8", "replace"), problem.status, headers, "application/json")


def _body(problem: Problem, path: str) -> dict[str, Any]:
    kind = TYPES.get(problem.status, "error")
    if path in TEI_ROUTES:
        return {"error": problem.message, "error_type": TEI_TYPES.get(problem.status, "Backend")}
    # `param` and `code` are what OpenAI's clients read.
    return {
        "error": {
            "type": kind, "message": problem.message, "param": problem.field, "code": kind,
        }
    }  # fmt: skip
