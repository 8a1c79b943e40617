"""Fine-tune for a task, and use what came of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from litebert.finetuning.finetune import FinetuneReport


def finetune(
    model: Annotated[
        Path, typer.Argument(help="A run, or a model folder: ours or Hugging Face's.")
    ],
    task: Annotated[
        str,
        typer.Option(
            help="cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli, squad-1.1, squad-2.0, "
            "race, ner; or for files of your own: classify, pair, regress, tag, qa, choice."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The run's folder; the same one continues a run.")],
    data: Annotated[
        Path | None, typer.Option(help="The folder of a published task's files.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Your examples: .csv, .tsv, .jsonl or .parquet.")
    ] = None,
    dev: Annotated[
        Path | None, typer.Option(help="Examples to measure on; else a tenth is held out.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Which column is what, e.g. text=body or label=stars; repeatable."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="paper (Table 14), base, small, or a TOML file; else by size."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting, e.g. epochs=5; repeatable."),
    ] = None,
    long: Annotated[
        str, typer.Option(help="Texts longer than the limit: truncate, or stride (windows).")
    ] = "truncate",
    seeds: Annotated[int, typer.Option(help="Runs from different seeds; the best is kept.")] = 1,
    retry: Annotated[
        str,
        typer.Option(help="Repeat a collapsed run: no, with another seed, or learning_rate."),
    ] = "no",
    keep_all: Annotated[bool, typer.Option(help="Keep every seed's model.")] = False,
    level: Annotated[str, typer.Option(help="RACE: middle, high or all.")] = "all",
    repair: Annotated[
        bool, typer.Option(help="Move answers that are not at their offset to the nearest place.")
    ] = False,
) -> None:
    """Fine-tune a pretrained encoder for a task: a published one, or your own file.

    Ctrl-C saves; the same command goes on. The best seed's model is in OUT/model and opens in
    transformers.

    Example: litebert finetune run --task sst-2 --data glue/SST-2 --out tuned --seeds 5

    Example: litebert finetune run --task classify --train reviews.csv --out tuned
    """
    from litebert.cli.live import watching
    from litebert.finetuning.finetune import finetune as run

    with watching() as watcher:
        result = run(
            model, task, out, data=data, train=train, dev=dev, columns=columns_of(column),
            level=level, repair=repair, recipe=recipe, overrides=set_ or (), overflow=long,
            seeds=seeds,
            retry=retry, keep_all=keep_all, watcher=watcher,  # type: ignore[arg-type]
        )  # fmt: skip
    if result.report is None:
        print("litebert: stopped and saved; the same command goes on", file=sys.stderr)
        raise typer.Exit(130)
    _show(result.report)
    print(f"{out / 'model'}: the best of {seeds} seed(s)")
    print(f"next: litebert predict {out} --input FILE")


def columns_of(pairs: list[str] | None) -> dict[str, str] | None:
    """Columns by their roles, from ROLE=NAME."""
    from litebert.base.errors import SettingsError

    if not pairs:
        return None
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise SettingsError(f"--column {wrong[0]}: expected ROLE=NAME, as in text=body")
    return dict(pair.split("=", 1) for pair in pairs)


def _show(report: FinetuneReport) -> None:
    """Scores by seed, and together."""
    for result in report.seeds:
        scores = "   ".join(
            f"{name}: " + ", ".join(f"{metric} {value:.4f}" for metric, value in part.items())
            for name, part in result.scores.items()
        )
        print(f"seed {result.seed}: {scores}")
    if len(report.seeds) > 1:
        print(
            f"{report.metric}: mean {report.mean:.4f}, deviation {report.deviation:.4f}, "
            f"median {report.median:.4f}, best {report.best:.4f}"
        )
    if report.collapses:
        print(f"{report.collapses} run(s) collapsed")


def scores(
    run: Annotated[list[Path], typer.Argument(help="Finished runs of `litebert finetune`.")],
) -> None:
    """Several fine-tuned runs side by side: scores over seeds, collapses, GLUE's average.

    With one run of each of GLUE's eight tasks (without WNLI, as papers have it on dev sets) the
    average of their medians is added.

    Example: litebert scores tuned-cola tuned-sst-2 tuned-rte
    """
    from litebert.finetuning.scoreboard import scores as compare

    board = compare(run)
    for row in board.rows:
        for part, found in row.scores.items():
            lines = [
                f"{metric} {summary.mean:.4f}"
                + ("" if summary.deviation is None else f" ± {summary.deviation:.4f}")
                + ("" if summary.count < 3 else f" (median {summary.median:.4f})")
                for metric, summary in found.items()
            ]
            collapsed = f"   {row.collapses} collapsed" if row.collapses else ""
            print(f"{row.task:10} {part:15} {', '.join(lines)}{collapsed}   {row.run}")
    if board.glue_average is not None:
        print(f"GLUE, average of eight: {board.glue_average:.4f}")
    elif len(board.rows) > 1:
        print(f"no GLUE average: without {', '.join(board.missing)}")


def predict(
    folder: Annotated[
        list[Path], typer.Argument(help="A fine-tuned run or model folder; several vote.")
    ],
    input: Annotated[Path, typer.Option(help="Examples: a file, or a published task's folder.")],
    out: Annotated[
        Path | None, typer.Option(help="Write here (JSON lines); else to the terminal.")
    ] = None,
    split: Annotated[
        str, typer.Option(help="Of a published task's folder; ax for a model of MNLI.")
    ] = "test",
    column: Annotated[
        list[str] | None, typer.Option(help="Which column is what, e.g. text=body; repeatable.")
    ] = None,
    repair: Annotated[
        bool, typer.Option(help="Move answers that are not at their offset to the nearest place.")
    ] = False,
    submission: Annotated[
        Path | None,
        typer.Option(
            help="Also in the task's official format: GLUE's zip (which grows task by task), "
            "SQuAD's folder of JSON, RACE's JSON lines."
        ),
    ] = None,
) -> None:
    """Predict with a fine-tuned model; several models are asked and their answers merged.

    Example: litebert predict tuned --input new.csv --out guesses.jsonl
    """
    from litebert.inference.predict import predict as run
    from litebert.inference.predict import to_json_lines

    found = run(
        folder, input, out=out, split=split, columns=columns_of(column), repair=repair,
        submission=submission, say=lambda text: print(text, file=sys.stderr),
    )  # fmt: skip
    if out is None:
        sys.stdout.write(to_json_lines(found))
    else:
        print(f"{out}: {len(found):,} predictions")


def embed(
    folder: Annotated[Path, typer.Argument(help="A run, or any model folder.")],
    input: Annotated[Path, typer.Option(help="Texts: one a line, or a table with a text column.")],
    out: Annotated[Path, typer.Option(help="Vectors as a .npy file, one row a text.")],
    pooling: Annotated[str, typer.Option(help="mean of all tokens, or first ([CLS]).")] = "mean",
    length: Annotated[int, typer.Option(help="Tokens of a text, at most.")] = 128,
    column: Annotated[str | None, typer.Option(help="The column of a table that is text.")] = None,
) -> None:
    """Turn texts into vectors for search and clustering; no labels needed.

    Example: litebert embed run --input notes.txt --out notes.npy
    """
    from litebert.inference.embed import embed as run

    vectors = run(folder, input, out, pooling=pooling, max_length=length, column=column)
    count, width = vectors.shape
    print(f"{out}: {count:,} vectors of {width} numbers")
