"""Every shipped table: parsed, built at every scale, counted, and planned without training."""

from __future__ import annotations

from pathlib import Path

import pytest

import litebert
from litebert.base.errors import LitebertError, SettingsError
from litebert.corpus.store import Store
from litebert.planning.count import parameters
from litebert.reproduction import listing
from litebert.reproduction.findings import find_out, published_pairs
from litebert.reproduction.grid import GridRequest, make_plan
from litebert.reproduction.scale import SCALES, leaves_out, scale_for, scaled_preset
from litebert.reproduction.table import load_table, load_tables, table_names
from tests.train.runs import write_store

NAMES = table_names()
# What the list of tables comes to; a table of the user's own is a file of the same form.
WANTED = {
    "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t11", "t12", "t13", "figure-1",
    "roberta-formats", "roberta-masking", "roberta-batch", "electra", "spanbert-masking",
    "spanbert-objective", "siblings",
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store([write_store(tmp_path_factory.mktemp("store"))])


def test_all_tables_are_there() -> None:
    assert set(NAMES) >= WANTED


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_parsed_counted_and_planned_at_every_scale(name: str, store: Store) -> None:
    table = load_table(name)
    assert table.claim.endswith((".", "?"))
    assert table.source
    found = find_out(table, None, None)
    for row in found.rows.values():
        if row.counted is not None and row.counted.published is not None:
            assert row.counted.remark  # as printed, or explained
    if table.compare == "counts":
        return
    assert set(table.expectations) >= set(SCALES), "say what to expect before it is run"
    for scale in SCALES.values():
        if all(leaves_out(table, row, scale) for row in table.rows):
            continue
        request = GridRequest([table], "5Mtok", 3, scale.name)
        plan = make_plan(request, store, lambda preset: 1000.0)
        trained = set(plan.rows[name]) | set(plan.left_out[name])
        assert trained == set(table.rows)
    assert "litebert pretrain" in litebert.reproduce([name], budget="full").commands


def test_a_row_keeps_its_ratios_and_its_question() -> None:
    minutes = SCALES["minutes"]
    table = load_table("t4")
    for row in table.rows:
        paper, ours = table.row_preset(row), scaled_preset(table, row, minutes)
        assert ours.objectives == paper.objectives
        assert ours.masking == paper.masking
        assert ours.data.input_format == paper.data.input_format
        assert ours.model.sharing == paper.model.sharing
        ratios = [m.intermediate_size / m.hidden_size for m in (paper.model, ours.model)]
        assert ratios[0] == ratios[1]
        wanted = paper.model.embedding_size / paper.model.hidden_size
        assert ours.model.embedding_size / ours.model.hidden_size == pytest.approx(wanted, abs=0.05)
        assert ours.model.hidden_dropout_prob == 0.0
    depths = load_table("t11")
    assert scaled_preset(depths, "layers-12", minutes).model.num_hidden_layers == 12
    assert leaves_out(depths, "layers-24", minutes)
    batches = load_table("roberta-batch")
    sizes = [scaled_preset(batches, row, minutes).data.batch_size for row in batches.rows]
    assert sizes == [8, 64, 256]
    dropout = load_table("t8")
    assert scaled_preset(dropout, "with", minutes).model.hidden_dropout_prob == 0.1


def test_a_scale_follows_from_a_budget() -> None:
    assert scale_for(60, None).name == "minutes"
    assert scale_for(3600, None).name == "hour"
    assert scale_for(8 * 3600, None).name == "eight_hours"
    assert scale_for(None, 1e6).name == "minutes"


def test_parameters_are_exact_and_every_disagreement_is_explained() -> None:
    """Table 1 of the paper, and the parameter columns of Tables 3 and 4."""
    exact = {
        "t1": {"albert-base": 11_683_584, "albert-large": 17_683_968, "albert-xlarge": 58_724_864,
               "albert-xxlarge": 222_595_584},
        "t3": {"all-shared-64": 9_681_408, "not-shared-128": 89_650_176,
               "all-shared-768": 31_114_752},
        "t4": {"shared-attention-128": 63_647_232, "shared-ffn-768": 57_117_696},
    }  # fmt: skip
    for name, rows in exact.items():
        table = load_table(name)
        for row, count in rows.items():
            assert parameters(table.row_preset(row))["total"] == count
    (found,) = litebert.reproduce(["t1"]).findings
    remarks = {name: row.counted.remark for name, row in found.rows.items() if row.counted}
    assert remarks["albert-base"] == "as printed, with the pooler"
    assert remarks["bert-large"] == "as printed, without the pooler"
    assert "235" in remarks["albert-xxlarge"]


def test_the_list_says_what_a_budget_comes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_measured", lambda preset: 20_000.0)
    listed = {one.table.name: one for one in litebert.reproduce(["list"], budget="2h").listed}
    assert list(listed) == NAMES
    assert listed["t1"].remark == "counted at once"
    assert listed["t5"].tokens is not None
    assert listed["t5"].tokens[0] == listed["t5"].tokens[1] > 1e6  # equal tokens
    assert listed["siblings"].tokens is not None
    assert listed["siblings"].tokens[0] < listed["siblings"].tokens[1]
    small = {one.table.name: one for one in litebert.reproduce(["list"], budget="5s").listed}
    assert "too small" in small["t5"].remark


def test_pairs_are_those_that_the_paper_separates_by_a_point() -> None:
    table = load_table("t5")
    pairs = {(a, b) for a, b, _ in published_pairs(table, "SOP")}
    assert pairs == {("sop", "none"), ("sop", "nsp"), ("none", "nsp")}
    assert list(published_pairs(table, "MLM")) == []


def test_tables_share_their_common_rows(store: Store) -> None:
    tables = load_tables(["t3", "t4", "t5"])
    plan = make_plan(GridRequest(tables, "1Mtok", 1, None), store, lambda _: 1.0)
    keys = [row.key for rows in plan.rows.values() for row in rows.values()]
    assert len(keys) == 19
    assert len(set(keys)) == len(plan.unique) == 14  # four of T4's and T5's "sop" are T3's
    assert plan.rows["t5"]["sop"].key == plan.rows["t3"]["all-shared-128"].key


def test_some_rows_bring_those_they_start_from_and_their_claims() -> None:
    (depths,) = load_tables(["t11:layers-6"])
    assert list(depths.rows) == ["layers-1", "layers-3", "layers-6"]
    (order,) = load_tables(["t5:none,sop"])
    assert [claim.first for claim in order.same] == ["sop"]


def test_equal_time_gives_faster_rows_more_tokens(store: Store) -> None:
    table = load_table("siblings")

    def speed(preset: litebert.Preset) -> float:
        return 2000.0 if preset.model.family == "albert" else 1000.0

    plan = make_plan(GridRequest([table], "120m", 2, None), store, speed)
    tokens = {name: row.tokens for name, row in plan.rows["siblings"].items()}
    assert tokens["albert"] == pytest.approx(2 * tokens["bert"], rel=0.1)
    assert plan.seconds == pytest.approx(7200, rel=0.15)


MINE = """
title = "Mine"
source = "nobody"
claim = "Nothing."
compare = "tokens"
preset = "albert-base"
[columns.MLM]
title = "masked LM"
measures = ["masked_lm_accuracy"]
[rows.a]
title = "A"
set = { "%s" = 2 }
published = { %s = 50.0 }
"""


@pytest.mark.parametrize(
    ("setting", "column", "said"),
    [
        ("model.num_hidden_layer", "MLM", "row 'a': unknown key 'model.num_hidden_layer'; did you"),
        ("model.num_hidden_layers", "MLN", "unknown column 'MLN'; did you mean 'MLM'?"),
    ],
)
def test_a_table_of_ones_own_says_what_is_wrong_with_it(
    tmp_path: Path, setting: str, column: str, said: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE % (setting, column))
    with pytest.raises(SettingsError, match="mine") as error:
        load_tables([str(path)])
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("tables", "options", "said"),
    [
        (["t55"], {}, "unknown table 't55'; did you mean"),
        (["none.toml"], {}, "none.toml: no such table file"),
        (["t5:sob"], {}, "table t5 has no row 'sob'; did you mean 'sop'?"),
        (["t5"], {}, "give --corpus"),
        (["t5"], {"budget": "5steps"}, "a time for all"),
        (["t5"], {"budget": "10ktok"}, "too small: table t5, row 'none' would train on 10,000"),
        (["t5"], {"scale": "weeks"}, "choose minutes, hour"),
        (["t5"], {"seeds": 0}, "at least one"),
        (["t5"], {"part": "3/2"}, "expected I/N"),
    ],
)
def test_what_cannot_be_run_is_told_in_a_sentence(
    tables: list[str], options: dict, said: str, store: Store, tmp_path: Path
) -> None:
    given = {"corpus": store.folders[0], "out": tmp_path / "out"} if options else {}
    with pytest.raises(LitebertError) as error:
        litebert.reproduce(tables, **given, **options)
    assert said in str(error.value)
