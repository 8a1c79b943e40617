"""Routes for the playground that ask no model: designs and training runs."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from litebert.serving.answers import ERRORS, as_json
from litebert.serving.designs import design, published_designs
from litebert.serving.runs import list_runs, read_run
from litebert.serving.schemas import Design, DesignList, DesignRequest, RunLines, RunList

router = APIRouter(prefix="/v1", tags=["tools"], responses=ERRORS)


@router.post("/design", response_model=Design)
async def design_model(body: DesignRequest) -> Response:
    """Parameters, FLOPs and memory of an encoder of some shape."""
    return as_json((await asyncio.to_thread(design, body)).model_dump())


@router.get("/designs", response_model=DesignList)
async def show_designs(max_length: Annotated[int, Query(ge=1, le=8192)] = 128) -> Response:
    """The same of the papers' models."""
    found = await asyncio.to_thread(published_designs, max_length)
    return as_json({"designs": [one.model_dump() for one in found]})


@router.get("/runs", response_model=RunList)
async def show_runs(request: Request) -> Response:
    """Training runs, the newest first."""
    found = await asyncio.to_thread(list_runs, request.app.state.runs)
    return as_json(found.model_dump())


@router.get("/run", response_model=RunLines)
async def show_run(
    request: Request, name: Annotated[str, Query(max_length=1000)],
    offset: Annotated[int, Query(ge=0, le=10**12)] = 0,
) -> Response:  # fmt: skip
    """Lines of a run's metrics from an offset on."""
    found = await asyncio.to_thread(read_run, request.app.state.runs, name, offset)
    return as_json(found.model_dump())
