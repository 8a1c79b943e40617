"""`litebert export --format onnx`: a folder for onnxruntime, browsers and embedding servers.

config.json, tokenizer files     as in the model folder
onnx/model.onnx                  fp32
modules.json, 1_Pooling/         of a sentence encoder
onnx/model_quantized.onnx        int8, what transformers.js takes by default
README.md                        what was checked, with the figures

Names and places are those that transformers.js, sentence-transformers and text-embeddings-inference
look for. Each file holds its weights once and is opened and compared before the folder is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from litebert.base.errors import SettingsError, did_you_mean
from litebert.base.files import read_json, write_json
from litebert.base.remote.folders import new_folder
from litebert.convert.onnx_check import check_file
from litebert.convert.onnx_heads import FEATURES, build_model, default_head, head_graph
from litebert.convert.onnx_score import Exam
from litebert.model.folder import CONFIG, copy_tokenizer
from litebert.model.huggingface import write_config
from litebert.model.model import Model
from litebert.model.sentence_encoder import write_sentence_encoder
from litebert.model.tensor_names import architecture_for
from litebert.tasks.readers.text_file import Say

FILES = {"fp32": "onnx/model.onnx", "int8": "onnx/model_quantized.onnx"}
TOKENIZER_CLASSES = {"Unigram": "AlbertTokenizer", "WordPiece": "BertTokenizer"}
CLASSES_WITHOUT_SEGMENTS = (None, "PreTrainedTokenizerFast", "TokenizersBackend")
STANDS_FOR = {"mean_classification": "classification"}  # in a class of transformers


def export_onnx(
    model: Model, source: Path, destination: Path, *, precisions: list[str], head: str | None,
    check: Path | None, say: Say,
) -> None:  # fmt: skip
    """Write and check the folder, whole or not at all."""
    head = head or default_head(model)
    head_graph(model, head)
    exam = None if check is None else Exam.open(model, source, head, check, say)
    with new_folder(destination) as scratch:
        (scratch / "onnx").mkdir()
        lines = []
        for precision in precisions:
            file, quantized = scratch / FILES[precision], precision == "int8"
            file.write_bytes(build_model(model, head, quantized=quantized).SerializeToString())
            found = check_file(model, head, file, FILES[precision], quantized=quantized)
            scored = "" if exam is None else f"; {_scores(exam, file)}"
            lines.append(found.sentence() + scored)
            say(lines[-1])
        write_json(scratch / CONFIG, _config(model, head))
        copy_tokenizer(source, scratch)
        if head != FEATURES:
            _name_tokenizer(scratch)
        elif model.sentence_encoder is not None and not model.sentence_encoder.unknown:
            write_sentence_encoder(model.sentence_encoder, scratch, model.config.hidden_size)
        (scratch / "README.md").write_text(_card(head, lines), encoding="utf-8")


def parse_precisions(text: str) -> list[str]:
    """Names in the order given, each once."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in FILES:
            raise SettingsError(f"precision {name!r}: {did_you_mean(name, FILES)}")
    return names


def _config(model: Model, head: str) -> dict[str, Any]:
    """config.json of the class of transformers that the graph stands for."""
    contents = model.contents()
    heads = [STANDS_FOR.get(head, head)] if head != FEATURES else []
    return write_config(contents, architecture_for(model.config.family, heads))


def _name_tokenizer(folder: Path) -> None:
    """transformers.js makes segments only for tokenizers of some classes, told by their name."""
    settings, content = folder / "tokenizer_config.json", folder / "tokenizer.json"
    if not settings.is_file() or not content.is_file():
        return
    config = read_json(settings)
    kind = read_json(content).get("model", {}).get("type")
    if kind in TOKENIZER_CLASSES and config.get("tokenizer_class") in CLASSES_WITHOUT_SEGMENTS:
        write_json(settings, {**config, "tokenizer_class": TOKENIZER_CLASSES[kind]})


def _scores(exam: Exam, file: Path) -> str:
    found = ", ".join(f"{name} {value:.4f}" for name, value in exam.score(file).items())
    return f"{found} on {len(exam.examples):,} examples"


def _card(head: str, lines: list[str]) -> str:
    listed = "".join(f"- {line}\n" for line in lines)
    return f"# ONNX: {head}\n\nMade and checked by `litebert export --format onnx`.\n\n{listed}"
