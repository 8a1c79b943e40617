"""GLUE's files: the ten layouts as published, their quirks, their errors, and a submission."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.tasks.metrics.classification import CLASSIFICATION_METRICS
from litebert.tasks.metrics.correlation import CORRELATION_METRICS
from litebert.tasks.published.glue import read_glue
from litebert.tasks.published.glue_submission import (
    SUBMISSION_FILES,
    submission_file,
    submission_text,
    write_submission,
)
from litebert.tasks.published.glue_tasks import GLUE
from litebert.tasks.texts import TextExample

METRICS = {**CLASSIFICATION_METRICS, **CORRELATION_METRICS}

MNLI_START = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse"
    "\tsentence1_parse\tsentence2_parse\tsentence1\tsentence2"
)
MNLI_ROW = "{}\t31\t31n\tfiction\t( a )\t( b )\t(ROOT a)\t(ROOT b)\tIt rained.\tIt was {}."
STS_START = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
PUBLISHED = {
    "CoLA/train.tsv": "gj04\t1\t\tThe cook burnt the soup.\ngj04\t0\t*\tThe cook burnt soup the.\n",
    "CoLA/dev.tsv": "bc01\t1\t\tA kite flew.",
    "CoLA/test.tsv": "index\tsentence\n0\tA kite fell.\n",
    "SST-2/train.tsv": "sentence\tlabel\na dull , dull evening \t0\n",
    "SST-2/dev.tsv": "sentence\tlabel\nbright and quick \t1\n",
    "SST-2/test.tsv": "index\tsentence\n0\tneither good nor bad\n",
    "MRPC/train.tsv": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    '1\t11\t12\t" We won , " he said .\tHe said : " We won .\n',
    "MRPC/dev.tsv": "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tOne .\tTwo .\n",
    "MRPC/test.tsv": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tOne .\tTwo .\n",
    "STS-B/train.tsv": f"{STS_START}\tscore\n"
    "7\tnews\theadlines\t2015\t0003\tnone\tnone\tA dog runs.\tA dog is running.\t4.750\n",
    "STS-B/dev.tsv": f"{STS_START}\tscore\n0\tg\tf\ty\t1\tn\tn\tA dog.\tA cat.\t0\n",
    "STS-B/test.tsv": f"{STS_START}\n0\tg\tf\ty\t1\tn\tn\tA dog.\tA cat.\n",
    "QQP/train.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    "133\t1\t2\tHow do I knit?\tHow does one knit?\t1\n"
    "134\t3\t4\tWhy is it late?\n\tWhy so late?\t0\n135\t5\t6\t\tWhat?\t0\n"
    "136\t7\t8\tWho?\tWhere?\t0\n",
    "QQP/dev.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n9\t1\t2\tA?\tB?\t0\n",
    "QQP/test.tsv": "id\tquestion1\tquestion2\n0\tA?\tB?\n1\t\tC?\n",
    "MNLI/train.tsv": f"{MNLI_START}\tlabel1\tgold_label\n"
    + MNLI_ROW.format(5, "wet")
    + "\tentailment\tentailment\n",
    "MNLI/dev_matched.tsv": f"{MNLI_START}\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
    + MNLI_ROW.format(6, "dry")
    + "\tneutral\tneutral\tneutral\tneutral\tneutral\tcontradiction\n",
    "MNLI/dev_mismatched.tsv": f"{MNLI_START}\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
    + MNLI_ROW.format(7, "odd")
    + "\tneutral\tneutral\tneutral\tneutral\tneutral\tneutral\n",
    "MNLI/test_matched.tsv": f"{MNLI_START}\n" + MNLI_ROW.format(8, "late") + "\n",
    "MNLI/test_mismatched.tsv": f"{MNLI_START}\n" + MNLI_ROW.format(9, "early") + "\n",
    "QNLI/train.tsv": "index\tquestion\tsentence\tlabel\n0\tWho?\tAnn did.\tentailment\n",
    "QNLI/dev.tsv": "index\tquestion\tsentence\tlabel\n3\tWho?\tIn May.\tnot_entailment\n",
    "QNLI/test.tsv": "index\tquestion\tsentence\n0\tWho?\tIn May.\n",
    "RTE/train.tsv": "index\tsentence1\tsentence2\tlabel\n0\tIt snows.\tSnow.\tentailment\n",
    "RTE/dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\tIt snows.\tRain.\tnot_entailment\n",
    "RTE/test.tsv": "index\tsentence1\tsentence2\n0\tIt snows.\tHail.\n",
    "WNLI/train.tsv": "index\tsentence1\tsentence2\tlabel\n0\tTim saw Tom fall.\tTim fell.\t0\n",
    "WNLI/dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\tTim saw Tom fall.\tTom fell.\t1\n",
    "WNLI/test.tsv": "index\tsentence1\tsentence2\n0\tTim saw Tom fall.\tTom fell.\n",
    "diagnostic/diagnostic.tsv": "index\tsentence1\tsentence2\n0\tA hat.\tNo hat.\n",
}


@pytest.fixture
def glue(tmp_path: Path) -> Path:
    for name, text in PUBLISHED.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


EXPECTED = {
    ("cola", "train"): [
        TextExample("0", "The cook burnt the soup.", None, "1"),
        TextExample("1", "The cook burnt soup the.", None, "0"),
    ],
    ("cola", "dev"): [TextExample("0", "A kite flew.", None, "1")],
    ("cola", "test"): [TextExample("0", "A kite fell.")],
    ("sst-2", "train"): [TextExample("0", "a dull , dull evening", None, "0")],
    ("sst-2", "dev"): [TextExample("0", "bright and quick", None, "1")],
    ("sst-2", "test"): [TextExample("0", "neither good nor bad")],
    ("mrpc", "train"): [TextExample("0", '" We won , " he said .', 'He said : " We won .', "1")],
    ("mrpc", "dev"): [TextExample("0", "One .", "Two .", "0")],
    ("mrpc", "test"): [TextExample("0", "One .", "Two .")],
    ("sts-b", "train"): [TextExample("7", "A dog runs.", "A dog is running.", 4.75)],
    ("sts-b", "dev"): [TextExample("0", "A dog.", "A cat.", 0.0)],
    ("sts-b", "test"): [TextExample("0", "A dog.", "A cat.")],
    ("qqp", "train"): [
        TextExample("133", "How do I knit?", "How does one knit?", "1"),
        TextExample("136", "Who?", "Where?", "0"),
    ],
    ("qqp", "dev"): [TextExample("9", "A?", "B?", "0")],
    ("qqp", "test"): [TextExample("0", "A?", "B?"), TextExample("1", "", "C?")],
    ("mnli", "train"): [TextExample("5", "It rained.", "It was wet.", "entailment")],
    ("mnli", "dev"): [TextExample("6", "It rained.", "It was dry.", "contradiction")],
    ("mnli", "dev-mismatched"): [TextExample("7", "It rained.", "It was odd.", "neutral")],
    ("mnli", "test"): [TextExample("8", "It rained.", "It was late.")],
    ("mnli", "test-mismatched"): [TextExample("9", "It rained.", "It was early.")],
    ("qnli", "train"): [TextExample("0", "Who?", "Ann did.", "entailment")],
    ("qnli", "dev"): [TextExample("3", "Who?", "In May.", "not_entailment")],
    ("qnli", "test"): [TextExample("0", "Who?", "In May.")],
    ("rte", "train"): [TextExample("0", "It snows.", "Snow.", "entailment")],
    ("rte", "dev"): [TextExample("0", "It snows.", "Rain.", "not_entailment")],
    ("rte", "test"): [TextExample("0", "It snows.", "Hail.")],
    ("wnli", "train"): [TextExample("0", "Tim saw Tom fall.", "Tim fell.", "0")],
    ("wnli", "dev"): [TextExample("0", "Tim saw Tom fall.", "Tom fell.", "1")],
    ("wnli", "test"): [TextExample("0", "Tim saw Tom fall.", "Tom fell.")],
    ("ax", "test"): [TextExample("0", "A hat.", "No hat.")],
}


def test_every_task_and_split_is_expected_below() -> None:
    assert set(EXPECTED) == {(name, split) for name, task in GLUE.items() for split in task.files}


@pytest.mark.parametrize(("name", "split"), EXPECTED)
def test_published_layouts(glue: Path, name: str, split: str) -> None:
    assert read_glue(name, glue, split) == EXPECTED[name, split]


def test_the_folder_of_one_task_and_other_spellings_of_it(glue: Path) -> None:
    assert read_glue("SST-2", glue / "SST-2", "dev") == EXPECTED["sst-2", "dev"]
    (glue / "SST-2").rename(glue / "sst2")
    assert read_glue("sst-2", glue, "dev") == EXPECTED["sst-2", "dev"]


def test_torn_rows_of_qqp_are_counted_aloud(glue: Path) -> None:
    said: list[str] = []
    read_glue("qqp", glue, "train", said.append)
    path = glue / "QQP/train.tsv"
    assert said == [f"{path}: skipped 3 of 5 rows, which are torn or empty in the published file"]
    read_glue("qqp", glue, "dev", said.append)
    assert len(said) == 1


def test_a_line_ends_at_a_newline_only(tmp_path: Path) -> None:
    odd = "before\u0085after\u2028and\x0bon"
    text = f'sentence\tlabel\r\n{odd}\t1\r\n"half a quote\t0\r\n\r\n'
    (tmp_path / "train.tsv").write_bytes(text.encode())
    examples = read_glue("sst-2", tmp_path, "train")
    assert [(one.first, one.label) for one in examples] == [(odd, "1"), ('"half a quote', "0")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rte", "", "train.tsv: empty"),
        ("rte", "index\tsentence1\tlabel\n", "line 1: no column 'sentence2', which RTE has"),
        ("cola", "gj04\t1\tA kite.\n", "line 1: 3 fields between tabs, expected 4"),
        (
            "sst-2",
            "sentence\tlabel\nfine\t1\nbad \t2\n",
            "line 3: unknown label '2'; SST-2 has '0'",
        ),
        ("sst-2", "sentence\tlabel\n \t1\n", "line 2: the column 'sentence' is empty"),
        ("sst-2", "sentence\tlabel\na\tb\t1\n", "line 2: 3 fields between tabs, expected 2"),
        (
            "sts-b",
            "sentence1\tsentence2\tscore\na\tb\t5.1\n",
            "line 2: the score '5.1' is no number",
        ),
        (
            "sts-b",
            "sentence1\tsentence2\tscore\na\tb\tnan\n",
            "line 2: the score 'nan' is no number",
        ),
        ("sts-b", "sentence1\tsentence2\tscore\na\tb\tx\n", "line 2: the score 'x' is no number"),
        (
            "qqp",
            "id\tquestion1\tquestion2\tis_duplicate\n1\ta\tb\tx\n",
            "line 2: unknown label 'x'",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / "train.tsv").write_text(text)
    with pytest.raises(FormatError) as error:
        read_glue(name, tmp_path, "train")
    assert message in str(error.value)
    assert str(tmp_path / "train.tsv") in str(error.value)
    assert "\n" not in str(error.value)


def test_a_test_file_needs_its_index(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("sentence\nfine\n")
    with pytest.raises(FormatError, match="no column 'index'"):
        read_glue("sst-2", tmp_path, "test")


def test_bad_text(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_bytes(b"sentence\tlabel\nok\t1\nna\xefve\t0\n")
    with pytest.raises(FormatError, match=r"dev.tsv, line 3: not valid UTF-8 \(0xef\)"):
        read_glue("sst-2", tmp_path, "dev")
    (tmp_path / "dev.tsv").write_bytes(b"PK\x03\x04")
    with pytest.raises(FormatError, match="looks like a ZIP archive"):
        read_glue("sst-2", tmp_path, "dev")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no GLUE task 'sst2'; did you mean 'sst-2'"):
        read_glue("sst2", tmp_path, "dev")
    with pytest.raises(SettingsError, match="RTE has no split 'dev-mismatched'; known: dev, test"):
        read_glue("rte", tmp_path, "dev-mismatched")
    with pytest.raises(FileError, match=r"holds neither dev.tsv nor RTE/dev.tsv"):
        read_glue("rte", tmp_path, "dev")
    with pytest.raises(FileError, match="nowhere: no such folder"):
        read_glue("rte", tmp_path / "nowhere", "dev")


def test_the_table_names_known_metrics_and_all_files_of_a_submission() -> None:
    assert all(metric in METRICS for task in GLUE.values() for metric in task.metrics)
    others = {"MNLI-m", "MNLI-mm", "QNLI", "RTE", "WNLI", "AX"}
    names = {"CoLA", "SST-2", "MRPC", "STS-B", "QQP"} | others
    assert sorted(SUBMISSION_FILES) == sorted(f"{name}.tsv" for name in names)
    assert submission_file("mnli", "test-mismatched") == "MNLI-mm.tsv"
    with pytest.raises(SettingsError, match="MNLI: the split 'dev' is not sent in"):
        submission_file("mnli", "dev")


def test_submission_text() -> None:
    assert submission_text("rte", [("0", "entailment"), ("1", "not_entailment")]) == (
        "index\tprediction\n0\tentailment\n1\tnot_entailment\n"
    )
    assert submission_text("cola", [("0", "1")]) == "index\tprediction\n0\t1\n"
    scores = [("0", 5.2), ("1", -0.0001), ("2", 3.14159)]
    assert submission_text("sts-b", scores) == "index\tprediction\n0\t5.000\n1\t0.000\n2\t3.142\n"


@pytest.mark.parametrize(
    ("name", "predictions", "message"),
    [
        ("rte", [("0", "1")], "the prediction '1' is not one of entailment, not_entailment"),
        ("sts-b", [("0", float("nan"))], "the prediction nan is not a number"),
        ("sts-b", [("0", "4")], "the prediction '4' is not a number"),
        ("wnli", [("0", "1"), ("0", "0")], "two predictions for the example '0'"),
    ],
)
def test_predictions_that_cannot_be_sent(
    name: str, predictions: list[tuple[str, str | float]], message: str
) -> None:
    with pytest.raises(SettingsError) as error:
        submission_text(name, predictions)
    assert message in str(error.value)


def test_the_zip_of_a_submission(tmp_path: Path) -> None:
    texts = {name: f"{name}\n" for name in SUBMISSION_FILES}
    assert write_submission(tmp_path / "a.zip", texts) == ()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name).decode() for name in archive.namelist()} == texts
    del texts["AX.tsv"]
    assert write_submission(tmp_path / "b.zip", texts) == ("AX.tsv",)
    with pytest.raises(SettingsError, match=r"mnli.tsv: not a file of a submission"):
        write_submission(tmp_path / "c.zip", {"mnli.tsv": ""})
    assert not (tmp_path / "c.zip").exists()


PUBLISHED_SIZES = {
    "cola": (8551, 1043, 1063),
    "sst-2": (67349, 872, 1821),
    "mrpc": (3668, 408, 1725),
    "sts-b": (5749, 1500, 1379),
    "rte": (2490, 277, 3000),
    "wnli": (635, 71, 146),
    "qnli": (None, 5463, 5463),
    "ax": (None, None, 1104),
}


@pytest.mark.parametrize("name", PUBLISHED_SIZES)
def test_published_sizes(real_data: Path, name: str) -> None:
    said: list[str] = []
    for split, size in zip(("train", "dev", "test"), PUBLISHED_SIZES[name], strict=True):
        if size is not None:
            examples = read_glue(name, real_data / "glue", split, said.append)
            assert len(examples) == size == len({one.id for one in examples})
            assert all(one.label is None for one in examples) == (split == "test")
            if split == "dev" and GLUE[name].labels:
                assert {one.label for one in examples} == set(GLUE[name].labels)
    assert said == []
