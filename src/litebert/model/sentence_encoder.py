"""How a text becomes one vector, as sentence-transformers writes it beside a model.

modules.json                        the modules, in order: Transformer, Pooling, Dense, Normalize
sentence_bert_config.json           how many tokens a text may have, whether it is lower-cased
1_Pooling/config.json               the mean of the tokens, or [CLS]
2_Dense/                            a dense layer over that: our mean-pooled classifier
config_sentence_transformers.json   prompts and versions, which we carry along
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from litebert.base.errors import FormatError
from litebert.base.files import read_json, read_json_list, write_json
from litebert.base.settings import Settings

MODULES, TRANSFORMER = "modules.json", "sentence_bert_config.json"
POOLING, DENSE = "1_Pooling", "2_Dense"
OTHERS = "config_sentence_transformers.json"
TOKENIZER = "tokenizer_config.json"
LONGEST = 1_000_000  # transformers writes a huge number where a tokenizer has no longest text
_OUR_NAMES = {"cls": "first", "cls_token": "first", "mean_tokens": "mean"}
_FAMILIES = ("bert", "roberta", "albert")  # old files are named after them


class SentenceEncoderSettings(Settings):
    """How a text becomes a vector."""

    pooling: Literal["mean", "first"] = Field(
        default="mean", description="the mean of a text's tokens, or its [CLS]"
    )
    max_length: int | None = Field(
        default=None, ge=3, description="tokens of a text; without it as many as the model can read"
    )
    normalize: bool = Field(default=False, description="whether vectors have length 1")
    lower_case: bool = Field(default=False, description="beside what the tokenizer does")
    unknown: tuple[str, ...] = Field(
        default=(), description="modules of sentence-transformers that are not followed here"
    )
    others: dict[str, Any] = Field(
        default_factory=dict, description="of config_sentence_transformers.json, carried along"
    )

    @property
    def prompt(self) -> str:
        """What is set before every text: the default prompt, where there is one."""
        prompts, name = self.others.get("prompts"), self.others.get("default_prompt_name")
        return str(prompts.get(name, "")) if isinstance(prompts, dict) and name else ""


# ---------------------------------------------------------------------------- reading


def read_sentence_encoder(folder: Path) -> SentenceEncoderSettings | None:
    """What a folder says, ours or sentence-transformers'; None where it says nothing."""
    if not (folder / MODULES).is_file():
        return None
    modules = [_module(row, folder / MODULES) for row in read_json_list(folder / MODULES)]
    values: dict[str, Any] = {"unknown": []}
    for number, (kind, path) in enumerate(modules):
        if kind == "Transformer" and number == 0:
            values |= _transformer(folder)
        elif kind == "Pooling" and number == 1:
            values |= _pooling(folder / path / "config.json", values)
        elif kind == "Normalize" and number == len(modules) - 1:
            values["normalize"] = True
        else:
            values["unknown"].append(path or kind)
    if [kind for kind, _ in modules[:2]] != ["Transformer", "Pooling"]:
        values["unknown"].append("no Pooling after a Transformer")
    if (folder / OTHERS).is_file():
        values["others"] = read_json(folder / OTHERS)
    return SentenceEncoderSettings.build(values, str(folder / MODULES))


def _module(row: Any, where: Path) -> tuple[str, str]:
    """The last name of a module's class, and its folder, which lies below the model's."""
    kind, path = (row.get(key) if isinstance(row, dict) else None for key in ("type", "path"))
    if not isinstance(kind, str) or not isinstance(path, str):
        raise FormatError(f"{where}: {row!r} is no module: it needs a type and a path")
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise FormatError(f"{where}: lists {path!r}, a folder outside its own")
    return kind.rsplit(".", 1)[-1], path


def _transformer(folder: Path) -> dict[str, Any]:
    names = [f"sentence_{family}_config.json" for family in _FAMILIES]
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    content = {} if found is None else read_json(found)
    longest = content.get("max_seq_length")
    if longest is None and (folder / TOKENIZER).is_file():  # newer files say it there
        longest = read_json(folder / TOKENIZER).get("model_max_length")
        longest = longest if isinstance(longest, int) and longest < LONGEST else None
    return {"max_length": longest, "lower_case": content.get("do_lower_case") or False}


def _pooling(file: Path, values: dict[str, Any]) -> dict[str, Any]:
    """One of the two that we have; others are named as not followed."""
    content = read_json(file)
    modes = content.get("pooling_mode")
    if modes is None:  # files before version 5.5 have a flag a mode
        flags = [key for key, value in content.items() if key.startswith("pooling_mode_") and value]
        modes = [key.removeprefix("pooling_mode_") for key in flags] or ["mean"]
    names = modes if isinstance(modes, list) else [modes]
    ours = [_OUR_NAMES.get(str(name), str(name)) for name in names]
    if ours in (["mean"], ["first"]) and content.get("include_prompt", True):
        return {"pooling": ours[0]}
    without = "" if content.get("include_prompt", True) else " without the prompt"
    return {"unknown": [*values["unknown"], f"{'+'.join(ours)} pooling{without}"]}


# ---------------------------------------------------------------------------- writing


def write_sentence_encoder(
    settings: SentenceEncoderSettings, folder: Path, width: int, labels: int | None = None
) -> None:
    """Write the files; with `labels`, a dense layer that gives so many logits follows."""
    kinds = ["Transformer", "Pooling", *(["Dense"] if labels else [])]
    kinds += ["Normalize"] if settings.normalize else []
    paths = ["", *(f"{number}_{kind}" for number, kind in enumerate(kinds) if number)]
    rows = zip(kinds, paths, strict=True)
    write_json(
        folder / MODULES,
        [
            {"idx": i, "name": str(i), "path": p, "type": f"sentence_transformers.models.{kind}"}
            for i, (kind, p) in enumerate(rows)
        ],
    )
    lengths = {} if settings.max_length is None else {"max_seq_length": settings.max_length}
    write_json(folder / TRANSFORMER, {**lengths, "do_lower_case": settings.lower_case})
    modes = {"mean": "pooling_mode_mean_tokens", "first": "pooling_mode_cls_token"}
    chosen = {flag: mode == settings.pooling for mode, flag in modes.items()}
    (folder / POOLING).mkdir()
    write_json(folder / POOLING / "config.json", {"word_embedding_dimension": width, **chosen})
    if settings.others:
        write_json(folder / OTHERS, settings.others)
    if labels:
        _write_dense(folder / DENSE, width, labels)


def _write_dense(folder: Path, width: int, labels: int) -> None:
    folder.mkdir()
    identity = "torch.nn.modules.linear.Identity"
    sizes = {"in_features": width, "out_features": labels, "bias": True}
    write_json(folder / "config.json", {**sizes, "activation_function": identity})


def check_dense(folder: Path) -> None:
    """Refuse a dense layer that is no classifier of ours any more."""
    activation = str(read_json(folder / "config.json").get("activation_function", "Tanh"))
    if activation.rsplit(".", 1)[-1] != "Identity":
        raise FormatError(
            f"{folder}: a dense layer with the activation {activation}, where config.json says "
            "that a mean-pooled classifier is there; remove dense_head from its litebert key to "
            "open the encoder alone"
        )
