"""The service's own routes, below /v1."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from litebert.base.errors import LitebertError
from litebert.serving.answers import ERRORS, as_json
from litebert.serving.layers import layers_of
from litebert.serving.problems import Problem
from litebert.serving.schemas import (
    EmbedAnswer,
    EmbedRequest,
    FillMaskAnswer,
    FillMaskRequest,
    LayersAnswer,
    LayersRequest,
    ModelCard,
    ModelList,
    OrderAnswer,
    OrderRequest,
    PredictAnswer,
    PredictRequest,
    TextsRequest,
    TokenizeAnswer,
)
from litebert.serving.served import Answered, ServedModel

router = APIRouter(prefix="/v1/models", tags=["models"], responses=ERRORS)


def served(request: Request, name: str) -> ServedModel:
    """The model of a path or a body."""
    models: Mapping[str, ServedModel] = request.app.state.models
    if name not in models:
        raise Problem(404, f"no model {name[:80]!r}; served are: {', '.join(models)}", "model")
    return models[name]


@router.get("", response_model=ModelList)
async def list_models(request: Request) -> Response:
    """All models that are served."""
    cards = [model.card().model_dump() for model in request.app.state.models.values()]
    return as_json({"object": "list", "data": cards})


@router.get("/{name}", response_model=ModelCard)
async def show_model(request: Request, name: str) -> Response:
    """One model."""
    return as_json(served(request, name).card().model_dump())


@router.post("/{name}/predict", response_model=PredictAnswer)
async def predict(request: Request, name: str, body: PredictRequest) -> Response:
    """Predict with a fine-tuned model; the form of an input follows from its task."""
    model = served(request, name)
    answered = await model.ask("predict", inputs_of(body), body)
    found = [{k: v for k, v in one.to_json().items() if k != "id"} for one in answered.results]
    return _answer(model, answered, predictions=found)


@router.post("/{name}/embed", response_model=EmbedAnswer)
async def embed(request: Request, name: str, body: EmbedRequest) -> Response:
    """Texts as vectors."""
    model = served(request, name)
    answered = await model.ask("embed", inputs_of(body), body, normalize=body.normalize)
    return _answer(model, answered, embeddings=answered.results.tolist())


@router.post("/{name}/fill-mask", response_model=FillMaskAnswer)
async def fill_mask(request: Request, name: str, body: FillMaskRequest) -> Response:
    """The words that may stand behind the masks of a text."""
    model = served(request, name)
    answered = await model.ask("fill-mask", inputs_of(body), body, top=body.top)
    masks = [
        [[vars(one) for one in mask.candidates] for mask in found.masks]
        for found in answered.results
    ]
    return _answer(model, answered, masks=masks)


@router.post("/{name}/order", response_model=OrderAnswer)
async def order(request: Request, name: str, body: OrderRequest) -> Response:
    """Which of two sentences came first, as the sentence-order head has it."""
    model = served(request, name)
    answered = await model.ask("order", [(body.first, body.second)], body)
    chance = answered.results[0].probability
    return _answer(model, answered, in_order=chance, swapped=1 - chance)


@router.post("/{name}/tokenize", response_model=TokenizeAnswer)
async def tokenize(request: Request, name: str, body: TextsRequest) -> Response:
    """The tokens of texts, with their places in them."""
    model = served(request, name)
    texts = inputs_of(body)
    model.check_inputs(texts)
    encoded = await asyncio.to_thread(model.tokenize, texts)
    found = [{"ids": one.ids, "tokens": one.tokens, "offsets": one.offsets} for one in encoded]
    return as_json({"model": name, "inputs": found})


@router.post("/{name}/layers", response_model=LayersAnswer)
async def layers(request: Request, name: str, body: LayersRequest) -> Response:
    """One input on its way through the layers: answers by depth, how far tokens move, attention."""
    model = served(request, name)
    (given,) = inputs_of(PredictRequest(inputs=body.input))
    model.check_inputs([given])
    deadline = model.limits.deadline
    model.admit(0, deadline)
    try:
        following = asyncio.to_thread(layers_of, model.engine, given, body.attention)
        found = await asyncio.wait_for(following, deadline)
    except TimeoutError:
        raise Problem(504, f"no answer within {deadline:g} s") from None
    except LitebertError as error:
        raise Problem(422, str(error), "input") from None
    return as_json({"model": name, **found.model_dump()})


def inputs_of(body: Any) -> list[Any]:
    """Inputs as the engine takes them, always a list."""
    inputs = body.inputs if isinstance(body.inputs, list) else [body.inputs]
    return [_plain(one) for one in inputs]


def _plain(value: str | BaseModel) -> Any:
    if isinstance(value, str):
        return value
    content = value.model_dump()
    return tuple(content["words"]) if "words" in content else content


def _answer(model: ServedModel, answered: Answered, **content: Any) -> Response:
    return as_json({"model": model.name, **content, "usage": answered.usage.model_dump()})
