"""A model: one encoder, perhaps a pooler, and the heads it was given.

    model = Model.create(config, heads=("masked_lm", "sentence_pair"), seed=1)
    state = model(ids, mask=mask)                     # encoded tokens
    loss, correct = model.head("masked_lm").loss(state, positions, targets)
    order = model.head("sentence_pair")(state)        # (B, 2)

Heads (heads.py) take the encoder's state. Token positions are indices into the flat tokens
`state.x_NH`: row * T + column for a padded batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from litebert.base.errors import FormatError, SettingsError, did_you_mean
from litebert.base.remote.folders import local_folder
from litebert.model.card import CardFacts
from litebert.model.config import EncoderConfig
from litebert.model.encoder import Encoder
from litebert.model.folder import find_model_folder, read_folder, write_folder
from litebert.model.heads import EXITS, HEADS, Exits, Head, Pooler
from litebert.model.huggingface import Contents
from litebert.model.layout import State
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.text.tokenizer import Tokenizer, load_tokenizer


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
        self.sentence_encoder: SentenceEncoderSettings | None = None
        self.encoder = Encoder(config)
        self.heads = nn.ModuleDict({name: _head(name, config, len(labels)) for name in heads})
        needed = any(HEADS[name].needs_pooler for name in self.heads)
        wanted = needed or (config.has_pooler if pooler is None else pooler)
        self.pooler = Pooler(config) if wanted else None
        self.attach_heads()

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
        model = cls.skeleton(config, heads, labels)
        _allocate(model, torch.device(device))
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
        with torch.device("meta"), _NoValues():
            return cls(config, heads, labels, pooler)

    def forward(self, ids: Tensor, **options: Any) -> State:
        """Encode; the options are those of `Encoder.forward`."""
        return self.encoder(ids, **options)

    def head(self, name: str, depth: int | None = None) -> Any:
        """A head by its name; it takes the encoder's state: of the end, or of a `depth` before it.

        A model without exits has one head for all depths.
        """
        if depth is not None and depth < self.config.num_hidden_layers and self.has_exits(name):
            return cast(Exits, self.heads[name + EXITS]).at(depth)
        if name not in self.heads:
            have = ", ".join(self.heads) or "none"
            raise SettingsError(f"this model has no {name} head (heads here: {have})")
        return self.heads[name]

    def has_exits(self, name: str) -> bool:
        """Whether a head has others like it at the depths before the last."""
        return name + EXITS in self.heads

    def attach_heads(self) -> None:
        """Show the heads what they borrow: the token table and the pooler."""
        for head in self.heads.values():
            cast(Head, head).attach(self.encoder.embeddings.token, self.pooler)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a model folder: ours, or one that `transformers` saved."""
        return cls.from_contents(read_folder(local_folder(folder)), where=str(folder))

    @classmethod
    def from_contents(cls, contents: Contents, where: str) -> Self:
        """Put a model together from its parts, without copying; `where` names them in errors."""
        pooler = contents.has_pooler
        model = cls.skeleton(contents.config, contents.heads, contents.labels, pooler)
        model.metadata = contents.metadata
        model.sentence_encoder = contents.sentence_encoder
        _check_shapes(model, contents.tensors, where)
        model.load_state_dict(contents.tensors, assign=True)
        return model.train(False)

    def contents(self) -> Contents:
        """The model taken apart."""
        tensors = {name: tensor.detach().cpu() for name, tensor in self.state_dict().items()}
        return Contents(
            self.config, tuple(self.heads), tensors, self.labels, self.metadata,
            self.sentence_encoder,
        )  # fmt: skip

    def save(
        self, folder: str | Path, *, overwrite: bool = False,
        tokenizer: Tokenizer | Path | str | None = None, facts: CardFacts | None = None,
    ) -> None:  # fmt: skip
        """Write the model folder, with a tokenizer if given; `facts` go into its model card."""
        if isinstance(tokenizer, str | Path):
            tokenizer = load_tokenizer(tokenizer)
        if tokenizer is not None and tokenizer.vocab_size > self.config.vocab_size:
            raise SettingsError(
                f"a tokenizer of {tokenizer.vocab_size:,} tokens does not fit a model of "
                f"{self.config.vocab_size:,}"
            )
        write_folder(
            self.contents(), Path(folder), overwrite=overwrite, tokenizer=tokenizer, facts=facts
        )


class _NoValues(TorchFunctionMode):
    """Leaves out the drawing of first values, which mean nothing without memory.

    For them torch would load its symbolic mathematics: two seconds and 70 MB.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.__name__ in ("normal_", "uniform_", "kaiming_uniform_"):
            return kwargs["tensor"] if kwargs and "tensor" in kwargs else args[0]
        return func(*args, **(kwargs or {}))


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
    generator.attach_heads()


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


def _head(name: str, config: EncoderConfig, labels: int) -> Head:
    if name not in HEADS:
        raise SettingsError(f"unknown head {name!r}; {did_you_mean(name, HEADS)}")
    return HEADS[name](config, labels)


def _allocate(model: nn.Module, device: torch.device) -> None:
    """Memory for the parameters of a skeleton; `to_empty` would load symbolic mathematics too."""
    memory: dict[nn.Parameter, nn.Parameter] = {}
    for module in model.modules():
        for name, shape in module.named_parameters(recurse=False, remove_duplicate=False):
            if shape not in memory:
                memory[shape] = nn.Parameter(torch.empty(shape.shape, device=device))
            setattr(module, name, memory[shape])


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
    """Open a model folder.

    Args:
        folder: A run, a model folder of ours, or one that `transformers` saved.
    """
    return Model.load(find_model_folder(Path(folder)))
