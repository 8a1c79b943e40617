"""Requests and answers as OpenAI's and text-embeddings-inference's clients know them.

Unknown keys are let through here: clients of other services send more than we need.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from litebert.serving.schemas import MOST_INPUTS, Text

Some = Annotated[list[Text], Field(min_length=1, max_length=MOST_INPUTS, fail_fast=True)]
Texts = Text | Some
OneOrTwo = Annotated[list[Text], Field(min_length=1, max_length=2)]
Direction = Literal["Left", "Right", "left", "right"]


class Lenient(BaseModel):
    """Values must be of their type, but may have company."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class OpenAIEmbeddingsRequest(Lenient):
    """POST /v1/embeddings"""

    input: Texts
    model: Text
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None


class OpenAIVector(BaseModel):
    """A vector, as numbers or as base64 of little-endian float32."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class OpenAIUsage(BaseModel):
    """Tokens."""

    prompt_tokens: int
    total_tokens: int


class OpenAIEmbeddings(BaseModel):
    """The answer to POST /v1/embeddings."""

    object: Literal["list"] = "list"
    model: str
    data: list[OpenAIVector]
    usage: OpenAIUsage


class TEIOptions(Lenient):
    """What text-embeddings-inference's requests have in common."""

    truncate: bool | None = None
    truncation_direction: Direction = "Right"
    prompt_name: Text | None = Field(default=None, description="refused: there are no prompts")


class TEIEmbedRequest(TEIOptions):
    """POST /embed"""

    inputs: Texts
    normalize: bool = True
    dimensions: Annotated[int, Field(ge=1)] | None = None


class HuggingFaceParameters(Lenient):
    """What huggingface_hub's client puts beside `inputs`, be it empty."""

    top_k: Annotated[int, Field(ge=1)] | None = None
    function_to_apply: Literal["softmax", "sigmoid", "none"] | None = None


class TEIPredictRequest(TEIOptions):
    """POST /predict: a text, a list of one text or a pair, or a list of such lists."""

    inputs: (
        Text
        | OneOrTwo
        | Annotated[list[OneOrTwo], Field(min_length=1, max_length=MOST_INPUTS, fail_fast=True)]
    )
    raw_scores: bool = Field(default=False, description="logarithms of the probabilities")
    parameters: HuggingFaceParameters | None = Field(
        default=None, description="where they are given, a text's scores are a list in a list"
    )


class TEIRerankRequest(TEIOptions):
    """POST /rerank"""

    query: Text
    texts: Some
    raw_scores: bool = False
    return_text: bool = False


class TEISimilarityInputs(Lenient):
    """One sentence against several."""

    source_sentence: Text
    sentences: Some


class TEISimilarityRequest(Lenient):
    """POST /similarity"""

    inputs: TEISimilarityInputs
    parameters: TEIOptions | None = None


class TEIScore(BaseModel):
    """A label and its score."""

    label: str
    score: float


class TEIRank(BaseModel):
    """A text's place among the others."""

    index: int
    score: float
    text: str | None = None


class TEIError(BaseModel):
    """Why there is no answer."""

    error: str
    error_type: str
