"""Answers as JSON, written without detours; /openapi.json describes them by their schemas."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from litebert.serving.schemas import ErrorAnswer

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text}
    for status, text in {
        400: "The body is not JSON",
        401: "A key is needed",
        404: "No such model, or it has no such head",
        408: "The request came too slowly",
        413: "The body is too large",
        415: "The body is not sent as JSON",
        422: "A field is wrong; `param` names it",
        429: "Overloaded; Retry-After says when to come back",
        503: "Warming up, or stopping",
        504: "The deadline has passed",
    }.items()
}


def as_json(content: Any) -> Response:
    """Plain values as a response; NaN would be no JSON."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), media_type="application/json")
