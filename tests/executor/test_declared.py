"""Declared domains and ranges: read from the catalog, typed, the data held to them, handed on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.worlds import recorder

from tieout.executor.catalog import parse_catalog
from tieout.executor.errors import ExecutorError
from tieout.executor.receive import Received
from tieout.executor.snapshot import build, source_of
from tieout.executor.sql.validate import ColumnOrigin
from tieout.executor.world import Pinned, StepResult, World, catalog_text, load_pinned
from tieout.pinned_text import manifest_lines

FILE = """\
line,currency,posted,amount,units,paid
1,GBP,2026-01-01,10.00,5,true
2,EUR,2026-03-31,,7,false
3,,2026-06-30,-2.50,9,true
"""


def catalog(columns: str):
    text = f'[workspace]\nname = "w"\n[source.bank]\nfile = "bank.csv"\n{columns}'
    return parse_catalog(text.encode(), root=Path(), place="tieout.toml")


def snapshot(columns: str, file: str = FILE):
    return build(catalog(columns).sources["bank"], [Received("bank.csv", file.encode())])


def column(name: str, line: str, kind: str = "") -> str:
    declared = f'type = "{kind}"\n' if kind else ""
    return f"[source.bank.column.{name}]\n{declared}{line}\n"


def pinned(columns: str) -> Pinned:
    keeper = recorder()
    made = snapshot(columns)
    for part in (made.manifest, *made.parts):
        keeper.store.put(part.payload)
    return load_pinned(keeper.store, made.address)


MONEY = "DECIMAL(18,2)"
HELD = (
    column("currency", 'domain = ["GBP", "EUR"]')
    + column("posted", "range = [2026-01-01, 2026-06-30]")
    + column("amount", 'range = ["-2.50", ""]', MONEY)
    + column("units", "domain = [5, 7, 9]")
)


def test_what_is_declared_travels_in_the_manifest_and_to_the_model():
    bank = pinned(HELD)
    assert bank.domains == {"currency": ("GBP", "EUR"), "units": ("5", "7", "9")}
    assert bank.ranges == {"posted": ("2026-01-01", "2026-06-30"), "amount": ("-2.50", "")}
    entry = json.loads(catalog_text({"bank": bank}))["catalog"][0]
    assert entry["domains"] == [["currency", ["GBP", "EUR"]], ["units", ["5", "7", "9"]]]
    assert entry["ranges"] == [["amount", "-2.50", ""], ["posted", "2026-01-01", "2026-06-30"]]
    granted = {c.name: c for c in World(recorder().store, {"bank": bank}).granted()["bank"].columns}
    assert granted["currency"].domain == ("GBP", "EUR")
    assert granted["amount"].range == ("-2.50", "")
    assert (granted["line"].domain, granted["line"].range) == ((), ("", ""))


def test_a_manifest_rebuilds_its_source_with_what_was_declared():
    made = snapshot(HELD)
    source, _files = source_of(made.manifest.payload)
    assert source.table == catalog(HELD).sources["bank"].table
    assert build(source, [Received("bank.csv", FILE.encode())]).address == made.address


def test_what_is_declared_is_told_when_a_source_is_pinned():
    many = column("line", f"domain = {[*range(1, 20)]}")
    lines = manifest_lines(json.loads(snapshot(HELD + many).manifest.payload))
    assert [line for line in lines if line.startswith("  holds")] == [
        "  holds   amount: -2.50 to anything",
        "  holds   currency: GBP, EUR",
        "  holds   line: 1, 2, 3, 4, 5, 6, 7, 8 and 11 more",
        "  holds   posted: 2026-01-01 to 2026-06-30",
        "  holds   units: 5, 7, 9",
    ]
    assert not any(
        "holds" in line for line in manifest_lines(json.loads(snapshot("").manifest.payload))
    )


def test_without_a_declaration_nothing_is_said_of_one():
    entry = json.loads(catalog_text({"bank": pinned("")}))["catalog"][0]
    assert {"domains", "ranges"} & entry.keys() == set()


def test_a_step_that_copies_a_column_hands_on_what_it_may_hold():
    bank = pinned(HELD)
    keeper = recorder()
    world = World(keeper.store, {"bank": bank})

    def add(step: str, *origins: ColumnOrigin) -> None:
        by_name = {c.name: c for c in bank.columns}
        columns = tuple(by_name[o.name] for o in origins)
        made = StepResult(
            step, "sql", None, ok=True, columns=columns, origins={o.name: o for o in origins}
        )
        world.steps[step] = made

    add("one", ColumnOrigin("currency", (), (("bank", "currency"),), "", inexact=False))
    add("two", ColumnOrigin("currency", (), (("one", "currency"),), "", inexact=False))
    add("low", ColumnOrigin("currency", (), (("bank", "currency"),), "lower", inexact=False))
    add("of_low", ColumnOrigin("currency", (), (("low", "currency"),), "", inexact=False))
    found = {name: table.columns[0].domain for name, table in world.granted().items()}
    assert found["one"] == found["two"] == ("GBP", "EUR")
    assert found["low"] == found["of_low"] == ()


@pytest.mark.parametrize(
    ("columns", "code", "said"),
    [
        (column("currency", 'domain = ["GBP"]'), "outside_domain", "line 3: EUR"),
        (column("posted", 'range = ["2026-02-01", ""]'), "outside_range", "line 2: 2026-01-01"),
        (column("posted", 'range = ["", "2026-02-01"]'), "outside_range", "line 3: 2026-03-31"),
        (column("amount", 'range = ["0", "5"]', MONEY), "outside_range", "line 2: 10.00; line 4"),
        (column("units", "domain = [5, 6]"), "outside_domain", "line 3: 7; line 4: 9"),
        (column("paid", "domain = ['true']", "BOOLEAN"), "declared", "BOOLEAN, which can have no"),
        (column("currency", 'range = ["A", "Z"]'), "declared", "VARCHAR, which can have no range"),
        (
            column("posted", 'domain = ["June"]'),
            "declared",
            "cannot have the declared value 'June'",
        ),
        (column("posted", 'range = ["2026-02-30", ""]'), "declared", "'2026-02-30'"),
        (column("posted", 'range = ["2026-06-30", "2026-01-01"]'), "declared", "ends before"),
        (column("amount", 'domain = ["10.005"]', MONEY), "declared", "'10.005'"),
        (
            column("units", 'range = ["0", "9223372036854775808"]'),
            "declared",
            "9223372036854775808",
        ),
        (column("units", 'domain = ["5"]\nrange = ["1", "9"]'), "declared", "both a domain and"),
    ],
)
def test_data_and_declarations_that_do_not_fit_are_refused(columns, code, said):
    with pytest.raises(ExecutorError) as caught:
        snapshot(columns)
    assert caught.value.code == f"source.{code}"
    assert said in caught.value.message
    assert "[source.bank.column." in caught.value.remedy
    assert "bank.csv" in caught.value.place


@pytest.mark.parametrize(
    "line",
    [
        "domain = [1.5]",
        "domain = [true]",
        'domain = "GBP"',
        'range = ["1"]',
        "range = [1, 2, 3]",
        "domain = [2026-01-01T00:00:00Z]",
        "range = [10:00:00, 11:00:00]",
    ],
)
def test_a_value_that_is_not_exact_text_is_no_declaration(line):
    with pytest.raises(ExecutorError) as caught:
        catalog(column("units", line))
    assert caught.value.code == "catalog.field"
    assert "bank.column.units" in caught.value.message


def test_many_rows_outside_are_counted():
    lines = "".join(f"{n},ZZZ,2026-01-01,1.00,5,true\n" for n in range(4, 40))
    with pytest.raises(ExecutorError, match="line 9: ZZZ; and 31 more"):
        snapshot(column("currency", 'domain = ["GBP", "EUR"]'), FILE + lines)
