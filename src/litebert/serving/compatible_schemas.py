"""Requests and answers as OpenAI's and text-embeddings-inference's clients know them.

Unknown keys are let through here: clients of other services send more than we need.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

Text = Annotated[str, StringConstraints(strict=True)]
Texts = Text | Annotated[list[Text], Field(min_length=1)]
Direction = Literal["Left", "Right", "left", "right"]


class OpenAIEmbeddingsRequest(BaseModel):
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


class TEIOptions(BaseModel):
    """What text-embeddings-inference's requests have in common."""

    truncate: bool | None = None
    truncation_direction: Direction = "Right"


class TEIEmbedRequest(TEIOptions):
    """POST /embed"""

    inputs: Texts
    normalize: bool = True


class TEIPredictRequest(TEIOptions):
    """POST /predict: a text, a list of texts, or a list of lists of one or two texts."""

    inputs: Text | list[Text] | list[list[Text]]
    raw_scores: bool = False


class TEIRerankRequest(TEIOptions):
    """POST /rerank"""

    query: Text
    texts: Annotated[list[Text], Field(min_length=1)]
    raw_scores: bool = False
    return_text: bool = False


class TEISimilarityInputs(BaseModel):
    """One sentence against several."""

    source_sentence: Text
    sentences: Annotated[list[Text], Field(min_length=1)]


class TEISimilarityRequest(BaseModel):
    """POST /similarity"""

    inputs: TEISimilarityInputs


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
