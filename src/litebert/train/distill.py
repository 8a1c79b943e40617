"""Distillation: a small encoder out of a trained one.

    result = litebert.distill("teacher", "albert-mini", "corpus", "run", budget="1h")

A run of pretraining whose preset has a [teacher], so it stops, resumes, is watched and evaluated
like any other; this module only chooses what is learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from litebert.base.errors import SettingsError
from litebert.base.settings import Tree, merge, parse_overrides
from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.corpus.store import Store
from litebert.inference.model_folder import open_tokenizer
from litebert.model.folder import find_model_folder
from litebert.model.sentence_encoder import read_sentence_encoder
from litebert.objectives.registry import OBJECTIVES, TAUGHT
from litebert.train.callbacks import Callback
from litebert.train.pretrain import PretrainingResult, pretrain
from litebert.train.teacher import same_tokens

# Of the losses beside masked_lm. Guesses: docs/log/distillation.md says what was measured.
WEIGHTS = {"relations": 1.0, "hidden_states": 1.0, "sentence_vectors": 10.0}


def distill(
    teacher: str | Path,
    student: str | Preset,
    corpus: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    budget: str | None = None,
    objectives: Sequence[str] = (),
    overrides: Iterable[str] = (),
    callbacks: Iterable[Callback] = (),
    started: float | None = None,
) -> PretrainingResult:
    """Train a small encoder to think like a trained one, on text without labels.

    The time that the teacher takes counts. Ctrl-C saves; the same command resumes where it was.
    Relations and hidden states need a corpus in the teacher's own tokens, as of `litebert prepare
    --tokenizer TEACHER`; sentence vectors can be learned with any tokenizer.

    Example: litebert distill minilm --student albert-mini --corpus corpus --out run --budget 1h

    Args:
        teacher: A trained encoder's folder or run: ours, transformers' or sentence-transformers'.
        student: A shipped preset (litebert presets) or a TOML file of your own.
        corpus: A store made by `litebert prepare`, or all its parts.
        out: The run's folder; the same one resumes a run.
        budget: How long: 30m (s, h, d), 200Mtok, 125000steps; else the preset's.
        objectives: What is learned: relations, hidden_states, sentence_vectors from the teacher,
            and masked_lm beside them; by default what teacher and tokenizer allow.
        overrides: Change settings, e.g. teacher.layer=5, teacher.relation_heads=8.
        callbacks: Told of the run's events (train/callbacks.py).
        started: When a budget of time began, by `time.monotonic`; now by default.
    """
    changes = parse_overrides(overrides)
    folders = [corpus] if isinstance(corpus, str | Path) else list(corpus)
    preset = load_preset(student) if isinstance(student, str) else student
    folder = find_model_folder(Path(teacher))
    chosen = tuple(objectives) or choose_objectives(folder, Store(folders))
    return pretrain(
        taught_preset(preset, folder, chosen, changes), folders, out, budget=budget,
        callbacks=callbacks, started=started,
    )  # fmt: skip


def choose_objectives(teacher: Path, store: Store) -> tuple[str, ...]:
    """All that fits: relations with one tokenizer, vectors of a sentence encoder or else."""
    told = read_sentence_encoder(teacher)
    alike = same_tokens(open_tokenizer(teacher), store.tokenizer)
    vectors = ("sentence_vectors",) if told is not None or not alike else ()
    return ("masked_lm", *(("relations",) if alike else ()), *vectors)


def taught_preset(
    student: Preset, teacher: Path, objectives: tuple[str, ...], changes: Tree
) -> Preset:
    """A student's preset with a teacher; `changes` go on top."""
    if not set(objectives) & set(TAUGHT):
        raise SettingsError(
            f"objectives {', '.join(objectives)}: nothing is learned from the teacher; add "
            f"{', '.join(TAUGHT)}"
        )
    learned = {
        "title": f"{student.title}; taught by {teacher.name}",
        "objectives": objectives,
        "teacher": {"folder": str(teacher), "weights": WEIGHTS},
        "generator": None,
    }
    tree = merge(student.model_dump(), learned)
    if not any(OBJECTIVES[name].negatives for name in objectives if name in OBJECTIVES):
        vectors = "sentence_vectors" in objectives  # else there is no need of pairs
        tree["data"]["input_format"] = "sentences" if vectors else "doc-sentences"
    return Preset.build(merge(tree, changes), student.title)
