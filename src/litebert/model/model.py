"""A model: one encoder, perhaps a pooler, and the heads it was given.

    model = Model.create(config, heads=("masked_language", "sentence_pair"), seed=1)
    state = model(ids, mask=mask)                     # encoded tokens
    loss, right = model.masked_language_loss(state, positions, targets)
    order = model.sentence_pair(state)                # (B, 2)

Heads are asked for by name and called by method. Token positions are indices into the flat tokens
`state.x_NH`: row * T + column for a padded batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from litebert.base.errors import FormatError, SettingsError, did_you_mean
from litebert.model.config import EncoderConfig
from litebert.model.encoder import Encoder
from litebert.model.folder import read_folder, write_folder
from litebert.model.heads import (
    ApartHead,
    ConditionalSpan,
    ConditionalSpanHead,
    LinearHead,
    MaskedLanguageHead,
    Pooler,
    ReplacedTokenHead,
    SentencePairHead,
    SpanBoundaryHead,
)
from litebert.model.huggingface import Contents
from litebert.model.layout import State
from litebert.model.lean import sampled_vocabulary_loss, vocabulary_loss
from litebert.text.tokenizer import Tokenizer, load_tokenizer

Builder = Callable[[EncoderConfig, int], nn.Module]

HEADS: dict[str, Builder] = {
    "masked_language": lambda config, labels: MaskedLanguageHead(config),
    "sentence_pair": lambda config, labels: SentencePairHead(config),
    "replaced_token": lambda config, labels: ReplacedTokenHead(config),
    "span_boundary": lambda config, labels: SpanBoundaryHead(config),
    "classification": lambda c, labels: LinearHead(c, labels, c.classifier_dropout_prob),
    "mean_classification": lambda c, labels: LinearHead(c, labels, c.classifier_dropout_prob),
    "apart_classification": lambda c, labels: ApartHead(c, labels, c.classifier_dropout_prob),
    "token_classification": lambda c, labels: LinearHead(c, labels, c.classifier_dropout_prob),
    "multiple_choice": lambda c, labels: LinearHead(c, 1, c.classifier_dropout_prob),
    "span": lambda config, labels: LinearHead(config, 2, 0.0),
    "conditional_span": lambda config, labels: ConditionalSpanHead(config),
}
NEEDS_POOLER = {"sentence_pair", "classification", "multiple_choice"}


class Model(nn.Module):
    """An encoder with heads. Build one with `create`, or from files with `litebert.load`."""

    def __init__(
        self,
        config: EncoderConfig,
        heads: Iterable[str] = (),
        labels: Sequence[str] = ("LABEL_0", "LABEL_1"),
        pooler: bool | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.labels = tuple(labels)
        self.metadata: dict[str, Any] = {}  # keys of a foreign config.json that we carry along
        self.encoder = Encoder(config)
        self.heads = nn.ModuleDict({name: _head(name, config, len(labels)) for name in heads})
        needed = not NEEDS_POOLER.isdisjoint(self.heads)
        wanted = needed or (config.has_pooler if pooler is None else pooler)
        self.pooler = Pooler(config) if wanted else None

    @classmethod
    def create(
        cls,
        config: EncoderConfig,
        heads: Iterable[str] = (),
        labels: Sequence[str] = ("LABEL_0", "LABEL_1"),
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> Self:
        """A fresh model: truncated normal weights (cut at two deviations), zero biases."""
        model = cls.skeleton(config, heads, labels).to_empty(device=device)
        generator = torch.Generator(device=device).manual_seed(seed)
        for module in model.modules():
            _initialize(module, config.initializer_range, generator)
        return model

    @classmethod
    def skeleton(
        cls,
        config: EncoderConfig,
        heads: Iterable[str] = (),
        labels: Sequence[str] = ("LABEL_0", "LABEL_1"),
        pooler: bool | None = None,
    ) -> Self:
        """Shapes without values: instant at any size, for counting and for loading into."""
        with torch.device("meta"):
            return cls(config, heads, labels, pooler)

    def forward(self, ids: Tensor, **options: Any) -> State:
        """Encode; the options are those of `Encoder.forward`."""
        return self.encoder(ids, **options)

    def pool(self, state: State) -> Tensor:
        """One vector a sequence, (B, H)."""
        if self.pooler is None:
            raise SettingsError("this model has no pooler, so it gives no vector per sequence")
        return self.pooler(state.first())

    def masked_language(self, state: State, positions: Tensor | None = None) -> Tensor:
        """Vocabulary logits at the given flat positions (M, V); at all tokens without."""
        head: Any = self._get("masked_language")
        return self._decode(head(_at(state, positions)), head.bias)

    def masked_language_loss(
        self, state: State, positions: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Summed loss and the number of right guesses at the masked positions only."""
        head: Any = self._get("masked_language")
        table = self.encoder.embeddings.token.weight
        return vocabulary_loss(head(_at(state, positions)), table, head.bias, targets)

    def sampled_masked_language_loss(
        self, state: State, positions: Tensor, targets: Tensor, chances: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same, with a guess drawn at each position by a chance in [0, 1): ELECTRA's fakes."""
        head: Any = self._get("masked_language")
        table = self.encoder.embeddings.token.weight
        return sampled_vocabulary_loss(
            head(_at(state, positions)), table, head.bias, targets, chances
        )

    def span_boundary(self, state: State, left: Tensor, right: Tensor, place: Tensor) -> Tensor:
        """Logits of masked tokens (M, V) from flat boundary positions and places in the span."""
        head: Any = self._get("span_boundary")
        return self._decode(head(_at(state, left), _at(state, right), place), head.bias)

    def span_boundary_loss(
        self, state: State, left: Tensor, right: Tensor, place: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Summed loss and the number of right guesses of the span-boundary objective."""
        head: Any = self._get("span_boundary")
        table = self.encoder.embeddings.token.weight
        x_ME = head(_at(state, left), _at(state, right), place)
        return vocabulary_loss(x_ME, table, head.bias, targets)

    def sentence_pair(self, state: State) -> Tensor:
        """Order (or next-sentence) logits, (B, 2)."""
        return self._get("sentence_pair")(self.pool(state))

    def replaced_token(self, state: State) -> Tensor:
        """One logit a token, (N,)."""
        return self._get("replaced_token")(state.x_NH)

    def classification(self, state: State) -> Tensor:
        """Label logits, (B, labels); one column is a regression."""
        return self._get("classification")(self.pool(state))

    def mean_classification(self, state: State) -> Tensor:
        """Label logits from the mean of a sequence's tokens, (B, labels); a head of our own."""
        return self._get("mean_classification")(state.mean())

    def apart_classification(self, state: State) -> Tensor:
        """Label logits from the means of two texts, (B / 2, labels); a head of our own."""
        return self._get("apart_classification")(state.mean())

    def token_classification(self, state: State) -> Tensor:
        """Label logits a token, (N, labels)."""
        return self._get("token_classification")(state.x_NH)

    def multiple_choice(self, state: State, choices: int) -> Tensor:
        """One logit a choice, (B / choices, choices); a question's choices lie side by side."""
        return self._get("multiple_choice")(self.pool(state)).view(-1, choices)

    def span(self, state: State) -> Tensor:
        """Start and end logits a token, (N, 2)."""
        return self._get("span")(state.x_NH)

    def conditional_span(
        self, state: State, allowed_BT: Tensor, start_B: Tensor | None = None, beams: int = 5
    ) -> ConditionalSpan:
        """SQuAD 2.0: starts, ends given a start, and the score of there being no answer."""
        x_BTH, real_BT = state.padded()
        return self._get("conditional_span")(x_BTH, allowed_BT & real_BT, start_B, beams)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a model folder: ours, or one that `transformers` saved."""
        return cls.from_contents(read_folder(Path(folder)), where=str(folder))

    @classmethod
    def from_contents(cls, contents: Contents, where: str) -> Self:
        """Put a model together from its parts, without copying; `where` names them in errors."""
        pooler = contents.has_pooler
        model = cls.skeleton(contents.config, contents.heads, contents.labels, pooler)
        model.metadata = contents.metadata
        _check_shapes(model, contents.tensors, where)
        model.load_state_dict(contents.tensors, assign=True)
        return model.train(False)

    def contents(self) -> Contents:
        """The model taken apart."""
        tensors = {name: tensor.detach().cpu() for name, tensor in self.state_dict().items()}
        return Contents(self.config, tuple(self.heads), tensors, self.labels, self.metadata)

    def save(
        self, folder: str | Path, *, overwrite: bool = False,
        tokenizer: Tokenizer | Path | str | None = None,
    ) -> None:  # fmt: skip
        """Write the model folder, with a tokenizer if given; it opens in `transformers`."""
        if isinstance(tokenizer, str | Path):
            tokenizer = load_tokenizer(tokenizer)
        if tokenizer is not None and tokenizer.vocab_size > self.config.vocab_size:
            raise SettingsError(
                f"a tokenizer of {tokenizer.vocab_size:,} pieces does not fit a model of "
                f"{self.config.vocab_size:,}"
            )
        write_folder(self.contents(), Path(folder), overwrite=overwrite, tokenizer=tokenizer)

    def _get(self, name: str) -> nn.Module:
        if name not in self.heads:
            have = ", ".join(self.heads) or "none"
            raise SettingsError(f"this model has no {name} head (heads here: {have})")
        return self.heads[name]

    def _decode(self, x_ME: Tensor, bias_V: Tensor) -> Tensor:
        return nn.functional.linear(x_ME, self.encoder.embeddings.token.weight, bias_V)


def share_embeddings(generator: Model, discriminator: Model) -> None:
    """ELECTRA: the generator uses the discriminator's embeddings, tables and norm alike."""
    mine, theirs = generator.encoder.embeddings, discriminator.encoder.embeddings
    for name in ("token", "position", "segment"):
        one, other = (getattr(tables, name).weight.shape for tables in (mine, theirs))
        if one != other:
            raise SettingsError(
                f"{name} embeddings of shape {tuple(one)} (generator) and {tuple(other)} "
                "(discriminator) cannot be shared"
            )
    generator.encoder.embeddings = theirs


def _check_shapes(model: Model, tensors: dict[str, Tensor], where: str) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    for name in sorted(expected.keys() ^ tensors.keys()):
        problem = "is missing" if name in expected else "has no place in this model"
        raise FormatError(f"{where}: tensor {name!r} {problem}")
    for name, tensor in tensors.items():
        if tuple(tensor.shape) == expected[name]:
            continue
        hint = " (vocab_size in config.json does not fit the weights)" if ".token." in name else ""
        raise FormatError(
            f"{where}: tensor {name!r} has shape {tuple(tensor.shape)}, "
            f"config.json asks for {expected[name]}{hint}"
        )


def _head(name: str, config: EncoderConfig, labels: int) -> nn.Module:
    if name not in HEADS:
        raise SettingsError(f"unknown head {name!r}; {did_you_mean(name, HEADS)}")
    return HEADS[name](config, labels)


def _at(state: State, positions: Tensor | None) -> Tensor:
    return state.x_NH if positions is None else state.x_NH.index_select(0, positions)


def _initialize(module: nn.Module, std: float, generator: torch.Generator) -> None:
    if isinstance(module, nn.LayerNorm):
        nn.init.ones_(module.weight)
        nn.init.zeros_(module.bias)
        return
    for name, parameter in module.named_parameters(recurse=False):
        if name == "weight":
            cut = 2 * std
            nn.init.trunc_normal_(parameter, std=std, a=-cut, b=cut, generator=generator)
        else:
            nn.init.zeros_(parameter)


def load(folder: str | Path) -> Model:
    """Open a model folder: ours, or one that `transformers` saved."""
    return Model.load(folder)
