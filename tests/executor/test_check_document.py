"""One builder for check, record and model: closed members, places, the same text every time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tieout.executor.check_document import (
    CHECK_FORMAT,
    check_document,
    reasons_of,
    refusal_members,
    verdict_members,
)
from tieout.executor.engine import Engine, EngineLimits
from tieout.executor.errors import ExecutorError
from tieout.executor.provenance import validation_document
from tieout.executor.sql import functions
from tieout.executor.sql.refusal import WHY, SqlRefused
from tieout.executor.sql.validate import GrantedColumn, GrantedTable
from tieout.executor.sql.verdict import REASON_OF_CODE, REASONS, Reason
from tieout.ledger.canon import encode

BANK = GrantedTable(
    "bank",
    (
        GrantedColumn("id", "BIGINT", range=("1", "100")),
        GrantedColumn("memo", "VARCHAR"),
        GrantedColumn("amt", "DECIMAL(18,2)"),
    ),
    ("id",),
)
TIED = "SELECT id, memo\nFROM bank\nWHERE id < 500\nORDER BY memo"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(cache=None, limits=EngineLimits()) as running:
        yield running


def refused(engine: Engine, sql: str) -> SqlRefused:
    with pytest.raises(SqlRefused) as caught:
        engine.validate(sql, {"bank": BANK})
    return caught.value


def test_an_admitted_text_with_its_rewrites_in_order_of_place(engine):
    found = engine.validate(TIED, {"bank": BANK})
    document = check_document(found)
    assert document["format"] == CHECK_FORMAT
    assert document["verdict"] == "admitted"
    assert document["standing"] == "function_of_data"
    assert [(r["name"], r["line"], r["column"]) for r in document["rewrites"]] == [
        ("clamped_range", 3, 12),
        ("total_order", 4, 14),
    ]
    assert document["rewrites"][0]["removed"] == "500"
    assert document["rewrites"][0]["inserted"] == "101"
    assert document["columns"] == [["id", "BIGINT"], ["memo", "VARCHAR"]]
    assert document["literals"] == ["500"]
    assert document["executed"] == TIED.replace("500", "101") + ", 1, 2"
    assert encode(document) == encode(check_document(engine.validate(TIED, {"bank": BANK})))


def test_the_record_holds_the_same_verdict(engine):
    found = engine.validate(TIED, {"bank": BANK})
    recorded = json.loads(validation_document(found))
    assert recorded["verdict"] == verdict_members(found.verdict)
    assert recorded["rewrites"] == ["clamped_range", "total_order"]
    checked = check_document(found)
    assert recorded["verdict"] == {k: checked[k] for k in ("standing", "reasons", "rewrites")}


def test_a_refusal_has_its_place_its_reason_and_the_way_out(engine):
    error = refused(engine, "SELECT id,\n  random() AS r\nFROM bank")
    assert check_document(error) == {
        "format": CHECK_FORMAT,
        "verdict": "refused",
        "code": "sql.random",
        "message": error.message,
        "why": WHY["sql.random"],
        "line": 2,
        "column": 3,
        "way_out": error.remedy,
        "standing": "not_a_function_of_data",
        "reasons": [{"name": "random", "detail": REASONS["random"], "line": 2, "column": 3}],
    }


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("approx_quantile(id, 0.5)", "approximate"),
        ("reservoir_quantile(id, 0.5)", "approximate"),
        ("list_approx_count_distinct([id])", "approximate"),
        ("hash(id)", "hash_order"),
        ("list_distinct([id])", "hash_order"),
        ("strip_accents(memo)", "collation"),
        ("icu_sort_key(memo, 'de')", "collation"),
        ("icu_collate_de(memo)", "collation"),
        ("json_group_object(memo, id)", "unordered_aggregate"),
    ],
)
def test_the_class_of_a_refused_function_is_the_reason(call, name, engine):
    document = check_document(refused(engine, f"SELECT {call} AS a FROM bank"))
    assert document["code"] == "sql.function"
    assert document["standing"] == "not_a_function_of_data"
    given = {"name": name, "detail": document["message"], "line": 1, "column": 8}
    assert document["reasons"] == [given]


def test_rows_by_their_position_are_a_matter_of_layout(engine):
    found = refused(engine, "SELECT a.id FROM bank AS a\nPOSITIONAL JOIN bank AS b")
    assert (found.code, [r.name for r in reasons_of(found)]) == ("sql.construct", ["layout"])


def test_reasons_by_class_are_reasons_of_classes_that_exist():
    groups = {e.group for entries in functions.classes().values() for e in entries}
    assert set(functions.REASON_OF_GROUP) <= groups
    assert set(functions.REASON_OF_GROUP.values()) <= set(REASONS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nope FROM bank",
        "SELECT id FROM bank WHERE id = 500",
        "DROP TABLE bank",
        "SELECT typeof(id) AS a FROM bank",
    ],
)
def test_a_refusal_for_another_cause_says_nothing_of_determinism(sql, engine):
    document = check_document(refused(engine, sql))
    assert (document["standing"], document["reasons"]) == (None, [])


def test_a_reason_that_the_judge_gave_is_kept():
    given = (Reason("asof_ties", "rows can tie", 1, 2),)
    error = SqlRefused("sql.construct", "no", remedy="Do.", line=1, column=2, reasons=given)
    assert reasons_of(error) == given
    assert reasons_of(ExecutorError("limit.seconds", "late", remedy="Wait.")) == ()


def test_what_is_no_refusal_of_the_gate_has_the_same_members():
    error = ExecutorError("limit.seconds", "it ran too long", remedy="Narrow it.")
    members = refusal_members(error)
    assert (members["line"], members["column"], members["why"]) == (None, None, "")
    assert encode(members)


def test_codes_that_are_reasons_name_known_ones():
    assert set(REASON_OF_CODE.values()) <= REASONS.keys()
    assert REASON_OF_CODE.keys() <= WHY.keys()
