"""Requests and answers of the service's own routes, as /openapi.json describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(strict=True)]
MOST_WORDS = 100_000
Few = Annotated[int, Field(ge=1, le=100)]


class Strict(BaseModel):
    """Unknown keys are refused, so that a misspelt option is noticed."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class PairInput(Strict):
    """Two texts that belong together."""

    text_a: Text
    text_b: Text


class WordsInput(Strict):
    """A sentence that is split into words already, to be tagged."""

    words: Annotated[list[Text], Field(min_length=1, max_length=MOST_WORDS, fail_fast=True)]


class QuestionInput(Strict):
    """A question and the passage that may answer it."""

    question: Text
    passage: Text


class OptionsInput(Strict):
    """Options to choose from, perhaps with a question and a passage."""

    options: Annotated[list[Text], Field(min_length=2, max_length=MOST_WORDS, fail_fast=True)]
    question: Text = ""
    passage: Text = ""


Input = Text | PairInput | WordsInput | QuestionInput | OptionsInput
# The service's own limit is smaller; this one is known before all of the list was looked at.
MOST_INPUTS = 10_000
Inputs = Annotated[list[Input], Field(max_length=MOST_INPUTS, fail_fast=True)]
Texts = Annotated[list[Text], Field(max_length=MOST_INPUTS, fail_fast=True)]


class Options(Strict):
    """How one request is to be answered."""

    depth: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="layers to run; by default as the service was started"
    )
    exit: Text | None = Field(
        default=None, description='an exit rule: "patience=3", "confidence=0.95", "accuracy=-0.5"'
    )
    truncate: bool = Field(
        default=True, description="cut texts off that are too long; otherwise they are refused"
    )
    deadline: Annotated[float, Field(gt=0, le=3600)] | None = Field(
        default=None, description="seconds after which no answer is wanted any more"
    )


class PredictRequest(Options):
    """What to predict for; the form of an input follows from the model's task."""

    inputs: Input | Inputs


class TextsRequest(Options):
    """One text or several."""

    inputs: Text | Texts


class EmbedRequest(TextsRequest):
    """Texts to turn into vectors."""

    normalize: bool | None = Field(default=None, description="unit length; by default as trained")


class FillMaskRequest(TextsRequest):
    """Texts with the mask token in them."""

    top: Few = Field(default=5, description="candidates for each mask")


class OrderRequest(Options):
    """Two sentences: were they written in this order?"""

    first: Text
    second: Text


class LayersRequest(Strict):
    """A text, or two, to be followed through the layers."""

    input: Input
    attention: bool = Field(default=False, description="the attention of all heads, too")


class Usage(BaseModel):
    """What an answer took."""

    tokens: int
    truncated: int = Field(description="inputs that were cut off")
    milliseconds: float


class AnswerBase(BaseModel):
    """What every answer has."""

    model: str
    usage: Usage


class PredictAnswer(AnswerBase):
    """A prediction for each input, in order."""

    predictions: list[dict[str, Any]]


class EmbedAnswer(AnswerBase):
    """A vector for each input, in order."""

    embeddings: list[list[float]]


class Candidate(BaseModel):
    """A token that may stand behind a mask."""

    token: str
    text: str = Field(description="the token as it reads")
    probability: float


class FillMaskAnswer(AnswerBase):
    """For each input, for each of its masks: candidates, the likeliest first."""

    masks: list[list[list[Candidate]]]


class OrderAnswer(AnswerBase):
    """How likely it is that the two were written in this order."""

    in_order: float
    swapped: float


class TokenizedInput(BaseModel):
    """The tokens of a text, with their places in it."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]


class TokenizeAnswer(BaseModel):
    """The tokens of each input."""

    model: str
    inputs: list[TokenizedInput]


class ModelCard(BaseModel):
    """A model that is served."""

    id: str
    object: Literal["model"] = "model"
    owned_by: str = "litebert"
    created: int = 0
    task: str | None = None
    kind: str | None = None
    labels: list[str] = []
    example: Any = Field(default=None, description="an input that the model can be asked")
    abilities: list[str] = Field(description="routes below /v1/models/{name} that it answers")
    precision: str
    layers: int
    shared: bool
    hidden_size: int
    parameters: int
    max_length: int = Field(description="tokens of an input")
    max_inputs: int = Field(description="inputs of a request")
    mask_token: str | None = None


class ModelList(BaseModel):
    """All models of the service."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class ErrorDetail(BaseModel):
    """Why there is no answer."""

    type: str
    message: str
    param: str | None = None
    code: str | None = None


class ErrorAnswer(BaseModel):
    """An error."""

    error: ErrorDetail


class LayersAnswer(BaseModel):
    """One input through the layers."""

    tokens: list[str]
    distance: list[list[float]] = Field(description="L2, by layer and token (Figure 1)")
    cosine: list[list[float]] = Field(description="between a layer's input and output")
    predictions: list[dict[str, Any]] = Field(description="what would be answered at each depth")
    exit_heads: bool = Field(description="whether each depth has a head of its own")
    exits: dict[str, int] = Field(description="the depth at which a rule stops")
    attention: list[list[list[list[float]]]] | None = Field(
        description="by layer, head, from, to; of short inputs only"
    )


class DesignRequest(Strict):
    """The shape of an encoder."""

    vocab_size: Annotated[int, Field(ge=100, le=2_000_000)] = 30_000
    embedding_size: Annotated[int, Field(ge=1, le=16_384)] = 128
    hidden_size: Annotated[int, Field(ge=1, le=16_384)] = 768
    num_hidden_layers: Annotated[int, Field(ge=1, le=200)] = 12
    num_attention_heads: Annotated[int, Field(ge=1, le=512)] = 12
    sharing: Literal["all", "attention", "ffn", "none"] = "all"
    max_length: Annotated[int, Field(ge=1, le=8192)] = 128


class Design(BaseModel):
    """What a shape costs."""

    name: str
    shape: DesignRequest
    paper_parameters: int | None = Field(description="as Table 1 of the ALBERT paper rounds them")
    parameters: dict[str, int] = Field(description="total, and by part")
    flops_per_token: float = Field(description="of the forward pass")
    memory_fp32: int = Field(description="bytes of weights")
    memory_int8: int


class DesignList(BaseModel):
    """The papers' models."""

    designs: list[Design]


class RunRow(BaseModel):
    """A training run."""

    name: str
    changed_seconds_ago: float


class RunList(BaseModel):
    """Training runs below the folder that the service was given."""

    enabled: bool
    runs: list[RunRow]


class RunLines(BaseModel):
    """Lines of a run's metrics.jsonl from an offset on."""

    name: str
    offset: int = Field(description="where to go on")
    lines: list[dict[str, Any]]
    warnings: list[str] = Field(description="what the run's health checks found")
