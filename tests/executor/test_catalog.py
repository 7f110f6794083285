"""tieout.toml: every mistake is told with its place; nothing is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.executor.catalog import Catalog, load_catalog, parse_catalog
from tieout.executor.errors import ExecutorError, Exit

HEAD = '[workspace]\nname = "w"\n'
BANK = '[source.bank]\nfile = "bank.csv"\n'


def parsed(text: str) -> Catalog:
    return parse_catalog(text.encode(), root=Path("/w"), place="/w/tieout.toml")


def test_the_smallest_and_a_whole_catalog():
    small = parsed(HEAD)
    assert (small.sources, small.workspace.store) == ({}, ".tieout/store")
    whole = parsed(
        HEAD
        + BANK
        + 'key = ["line_id"]\nfooter = ["^Total"]\n[source.bank.column.amount]\ntype = "DECIMAL(18,2)"\n'
        + '[source.news]\nfolder = "news"\n[source.news.published]\n"a.txt" = 2026-06-30\n'
        + '[model]\nname = "m"\nretries = 0\n[limits]\nturns_max = 3\n'
    )
    assert [(s.name, s.kind) for s in whole.sources.values()] == [
        ("bank", "table"),
        ("news", "text"),
    ]
    assert whole.source("bank").table.column["amount"].type == "DECIMAL(18,2)"
    assert (whole.model.retries, whole.limits.turns_max) == (0, 3)
    assert whole.payload.startswith(b"[workspace]")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("", "catalog.field", "workspace"),
        ("[workspace]\n", "catalog.field", "workspace.name"),
        ("x = [", "catalog.not_toml", "end of document"),
        ("x = 1 2\n", "catalog.not_toml", "line 1"),
        (HEAD + "[workspace]\n", "catalog.not_toml", "line 3"),
        (HEAD + BANK + BANK, "catalog.not_toml", "twice"),
        (HEAD + BANK + 'file = "b.csv"\n', "catalog.not_toml", "overwrite"),
        (HEAD + '[source.Bank]\nfile = "x"\n', "catalog.source_name", "'Bank'"),
        (HEAD + '[source."a b"]\nfile = "x"\n', "catalog.source_name", "'a b'"),
        (HEAD + '[source.""]\nfile = "x"\n', "catalog.source_name", "''"),
        (HEAD + "[source.bank]\n", "catalog.source_kind", "neither"),
        (HEAD + BANK + 'folder = "x"\n', "catalog.source_kind", "both"),
        (HEAD + BANK + 'kee = ["x"]\n', "catalog.field", "source.bank.kee"),
        (HEAD + BANK + "key = 5\n", "catalog.field", "source.bank.key"),
        (HEAD + BANK + 'key = "line_id"\n', "catalog.field", "source.bank.key"),
        (
            HEAD + BANK + '[source.bank.column.a]\ntype = "DOUBLE"\n',
            "catalog.field",
            "column.a.type",
        ),
        (
            HEAD + BANK + '[source.bank.column.a]\ntype = "MONEY"\n',
            "catalog.field",
            "column.a.type",
        ),
        (
            HEAD + BANK + '[source.bank.column.a]\ndate_order = "any"\n',
            "catalog.field",
            "date_order",
        ),
        (HEAD + "[limits]\nturns_max = 0\n", "catalog.field", "limits.turns_max"),
        (HEAD + "[limits]\nturns = 1\n", "catalog.field", "limits.turns"),
        (HEAD + "[model]\nretries = 11\n", "catalog.field", "model.retries"),
        (HEAD + "[model]\nkey = 'sk'\n", "catalog.field", "model.key"),
        (HEAD + "[surprise]\n", "catalog.field", "surprise"),
    ],
)
def test_mistakes(text, code, said):
    with pytest.raises(ExecutorError) as caught:
        parsed(text)
    error = caught.value
    assert error.code == code
    assert said in error.message
    assert (error.place, error.exit_code) == ("/w/tieout.toml", Exit.REFUSED)
    assert error.remedy


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            HEAD + BANK + '[source.bank.column.a]\ntype = "MONEY"\n',
            ("source.bank.column.a.type must be one of BOOLEAN, BIGINT, INTEGER, HUGEINT, DATE, "
            "TIMESTAMP, TIMESTAMPTZ, VARCHAR, DECIMAL, or DECIMAL(18,2) with digits of your own"),
        ),
        (HEAD + BANK + 'kee = ["x"]\n', "known there: file, folder, key, note, encoding,"),
        (
            HEAD + BANK + '[source.bank.column.a]\nkind = "x"\n',
            "known there: type, decimal, grouping, negative, date_order, format, empty, note",
        ),
        (HEAD + "[surprise]\n", "known there: workspace, source, model, limits"),
        (
            HEAD + BANK + '[source.bank.column.a]\ndate_order = "any"\n',
            "must be one of 'day first', 'month first' or 'year first'",
        ),
        (HEAD + BANK + "key = 5\n", "source.bank.key must be a list in brackets"),
        (HEAD + BANK + "key = ['a', 5]\n", "source.bank.key 2 must be a text in quotes"),
        (HEAD + "[model]\nretries = 11\n", "model.retries must be at most 10"),
        (HEAD + "[limits]\nturns_max = true\n", "limits.turns_max must be a whole number"),
    ],
)  # fmt: skip
def test_a_fault_says_what_is_allowed(text, said):
    with pytest.raises(ExecutorError) as caught:
        parsed(text)
    assert said in caught.value.message


def test_bytes_that_are_no_text():
    with pytest.raises(ExecutorError) as caught:
        parse_catalog(b"# \xff", root=Path("/w"), place="p")
    assert caught.value.code == "catalog.not_toml"


def test_an_unknown_source_names_the_known_ones():
    with pytest.raises(ExecutorError) as caught:
        parsed(HEAD + BANK).source("gl")
    assert caught.value.code == "catalog.unknown_source"
    assert "bank" in caught.value.message


def test_a_catalog_that_is_not_there(tmp_path):
    with pytest.raises(ExecutorError) as caught:
        load_catalog(tmp_path / "tieout.toml")
    error = caught.value
    assert (error.code, error.exit_code) == ("catalog.missing", Exit.NO_WORKSPACE)
    assert "tieout init" in error.remedy
    with pytest.raises(ExecutorError) as caught:
        load_catalog(tmp_path)
    assert caught.value.code == "catalog.unreadable"


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda b: b.decode("latin-1")))
def test_any_text_is_read_or_refused(text):
    for whole in (text, HEAD + text, HEAD + BANK + text):
        try:
            parsed(whole)
        except ExecutorError as error:
            assert error.code.startswith("catalog.")
        except UnicodeEncodeError:
            return
