"""Routes that other services' clients know: OpenAI's embeddings, text-embeddings-inference's.

The latter have no model in the path: they ask the first model of the service that can.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from numpy.typing import NDArray
from starlette.responses import Response

from litebert.serving.answers import ERRORS, as_json
from litebert.serving.compatible_schemas import (
    HuggingFaceParameters,
    OpenAIEmbeddings,
    OpenAIEmbeddingsRequest,
    TEIEmbedRequest,
    TEIError,
    TEIOptions,
    TEIPredictRequest,
    TEIRank,
    TEIRerankRequest,
    TEIScore,
    TEISimilarityRequest,
)
from litebert.serving.problems import Problem
from litebert.serving.routes import served
from litebert.serving.schemas import Options
from litebert.serving.served import Answered, ServedModel

TINY = 1e-45  # of float32
openai = APIRouter(tags=["OpenAI"], responses=ERRORS)
tei = APIRouter(
    tags=["text-embeddings-inference"],
    responses={status: {**row, "model": TEIError} for status, row in ERRORS.items()},
)


@openai.post("/v1/embeddings", response_model=OpenAIEmbeddings)
async def openai_embeddings(request: Request, body: OpenAIEmbeddingsRequest) -> Response:
    """Texts as vectors, as OpenAI's clients ask for them."""
    model = served(request, body.model)
    _check_dimensions(model, body.dimensions)
    texts = body.input if isinstance(body.input, list) else [body.input]
    answered = await model.ask("embed", texts, Options())
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(row, body.encoding_format)}
        for index, row in enumerate(answered.results)
    ]
    tokens = answered.usage.tokens
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return as_json({"object": "list", "model": model.name, "data": data, "usage": usage})


@tei.post("/embed", response_model=list[list[float]])
async def tei_embed(request: Request, body: TEIEmbedRequest) -> Response:
    """Texts as vectors; always a list of them."""
    texts = body.inputs if isinstance(body.inputs, list) else [body.inputs]
    _check_dimensions(_first(request, "embed"), body.dimensions)
    answered = await _ask(request, "embed", texts, body, normalize=body.normalize)
    return as_json(answered.results.tolist())


@tei.post("/predict", response_model=list[TEIScore] | list[list[TEIScore]])
async def tei_predict(request: Request, body: TEIPredictRequest) -> Response:
    """Labels with their scores, the likeliest first; for a list of lists, a list of them."""
    listed: list[Any] = body.inputs if isinstance(body.inputs, list) else [body.inputs]
    many = not isinstance(listed[0], str)
    parameters = body.parameters or HuggingFaceParameters()
    if parameters.function_to_apply == "sigmoid":
        raise Problem(422, "function_to_apply sigmoid is not supported", "parameters")
    raw = body.raw_scores or parameters.function_to_apply == "none"
    answered = await _ask(
        request, "predict", [_tei_input(one) for one in (listed if many else [listed])], body
    )
    found = [_scores(one, raw)[: parameters.top_k] for one in answered.results]
    # huggingface_hub's client takes the first of what it gets, and sends `parameters` always;
    # text-embeddings-inference has none, and answers one text with one list.
    return as_json(found if many or body.parameters is not None else found[0])


@tei.post("/rerank", response_model=list[TEIRank])
async def tei_rerank(request: Request, body: TEIRerankRequest) -> Response:
    """Texts by how near they are to a query: the cosine of their vectors."""
    scores = await _similarities(request, body.query, body.texts, body)
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    rows: list[dict[str, Any]] = [{"index": index, "score": scores[index]} for index in order]
    if body.return_text:
        rows = [{**row, "text": body.texts[row["index"]]} for row in rows]
    return as_json(rows)


@tei.post("/similarity", response_model=list[float])
async def tei_similarity(request: Request, body: TEISimilarityRequest) -> Response:
    """The cosine between a sentence and others."""
    asked = body.inputs
    options = body.parameters or TEIOptions()
    scores = await _similarities(request, asked.source_sentence, asked.sentences, options)
    return as_json(scores)


async def _similarities(
    request: Request, query: str, texts: list[str], body: TEIOptions
) -> list[float]:
    answered = await _ask(request, "embed", [query, *texts], body, normalize=True)
    first, *others = answered.results
    return [float(np.dot(first, other)) for other in others]


async def _ask(
    request: Request, ability: str, inputs: list[Any], body: TEIOptions, **more: Any
) -> Answered:
    return await _first(request, ability).ask(ability, inputs, _options(body), **more)


def _first(request: Request, ability: str) -> ServedModel:
    for model in request.app.state.models.values():
        if ability in model.abilities:
            return model
    raise Problem(404, f"no model of this service has {ability}")


def _options(body: TEIOptions) -> Options:
    if body.truncation_direction.lower() == "left":
        raise Problem(422, "truncation_direction Left is not supported", "truncation_direction")
    if body.prompt_name is not None:
        raise Problem(422, "prompt_name: the models of this service have no prompts", "prompt_name")
    return Options(truncate=bool(body.truncate))


def _check_dimensions(model: ServedModel, dimensions: int | None) -> None:
    width = model.engine.model.config.hidden_size
    if dimensions not in (None, width):
        raise Problem(422, f"dimensions {dimensions}: the model has {width}", "dimensions")


def _tei_input(texts: list[str]) -> Any:
    return texts[0] if len(texts) == 1 else tuple(texts)


def _scores(prediction: Any, raw: bool) -> list[dict[str, Any]]:
    probabilities = getattr(prediction, "probabilities", None)
    if not isinstance(probabilities, dict):
        raise Problem(
            404, "the service's model has no labels to score; ask /v1/models/NAME/predict"
        )
    rows = sorted(probabilities.items(), key=lambda row: -row[1])
    # Logits but for a constant, which a softmax does not see.
    return [{"label": k, "score": math.log(max(p, TINY)) if raw else p} for k, p in rows]


def _encoded(row: NDArray[np.float32], form: str) -> list[float] | str:
    if form == "base64":
        return base64.b64encode(row.astype("<f4").tobytes()).decode()
    return row.tolist()
