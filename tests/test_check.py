"""`tieout check`: what it prints, its exit codes, its one JSON document; that it writes nothing."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from end_to_end.small import CATALOG, answer, figure, make, plan, sql, steps

from tieout import open_workspace
from tieout.check import CONTEXT_CHARS, check, checked_document, pointed
from tieout.cli import start
from tieout.executor.sql.refusal import WAYS_OUT

ADMITTED = {
    "format", "verdict", "standing", "reasons", "rewrites", "tables", "columns", "functions",
    "literals", "ordered", "countercheck", "executed", "file", "as_of", "snapshots", "not_pinned",
    "changed", "byte_order_mark",
}  # fmt: skip
REFUSED = {
    "format", "verdict", "code", "message", "why", "line", "column", "way_out", "standing", "reasons",
    "file", "as_of", "snapshots", "not_pinned", "changed", "byte_order_mark",
}  # fmt: skip
GOOD = "SELECT account, sum(amount) AS total FROM gl WHERE amount > 10 GROUP BY account\n"
TIED = "SELECT account, amount\nFROM gl\nORDER BY account\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with snapshots of all its sources."""
    folder = make(tmp_path_factory.mktemp("check") / "w")
    assert start(["init", str(folder)]) == 0
    assert start(["snapshot", "-w", str(folder)]) == 0
    return folder


@pytest.fixture
def said(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Check a text from standard input: exit code, standard output, standard error."""

    def ask(sql: str | bytes, *arguments: str) -> tuple[int, str, str]:
        payload = sql.encode() if isinstance(sql, str) else sql
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(payload)))
        code = start(["check", "-", *arguments])
        return (code, *capsys.readouterr())

    return ask


@pytest.fixture(scope="module")
def document(made: Path) -> Iterator[Any]:
    """The document of a check, of one workspace with one engine; as the command line prints it."""
    with open_workspace(made) as workspace:

        def ask(sql: str, **more: Any) -> dict[str, Any]:
            checked = checked_document(check(workspace, "-", sql, **more))
            found = json.loads(json.dumps(checked.data))
            assert isinstance(found, dict)
            return found

        yield ask


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_an_admitted_query_is_told_with_all_that_was_found(said):
    code, out, err = said(GOOD)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == ["-: admitted", "  verdict    a function of the data"]
    assert lines[2].startswith("  tables     gl blake3:")
    assert lines[3:] == [
        "  columns    account VARCHAR, total DECIMAL(38,2)",
        "  functions  sum",
        "  literals   10",
    ]


def test_a_rewrite_is_told_with_its_place_and_the_text_that_would_run(said):
    code, out, _ = said(TIED)
    assert code == 0
    assert "  reason     3:17 sequence: " in out
    assert "  rewrite    3:17 total_order: put in ', 1, 2'" in out
    assert out.endswith(
        "  executed\n    │ SELECT account, amount\n    │ FROM gl\n    │ ORDER BY account, 1, 2\n"
    )


def test_a_refused_query_begins_with_a_line_for_editors(said, here, capsys):
    (here / "q.sql").write_text("SELECT line_id,\r\n\tnow() AS t\r\nFROM gl\r\n")
    assert start(["check", "q.sql"]) == 4
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        "q.sql:2:2: sql.clock: the function now is not admitted",
        "  2 │  now() AS t",
        "    │  ^",
        "  why        It reads the clock, so that the result would differ from day to day.",
        f"  way out    {WAYS_OUT['sql.clock']}",
        "  reason     2:2 clock: it reads the clock",
    ]
    (here / "q.sql").unlink()


@pytest.mark.parametrize("sql", [GOOD, TIED, "SELECT 1 AS one"])
def test_the_document_of_an_admitted_query_has_a_closed_shape(sql, document):
    found = document(sql)
    assert (found["format"], found["verdict"]) == ("tieout.check/1", "admitted")
    assert found.keys() == ADMITTED
    assert found["file"] == "-"
    assert set(found["snapshots"]) == {"bank", "gl"}
    for rewrite in found["rewrites"]:
        assert rewrite.keys() == {"name", "removed", "inserted", "line", "column", "round", "at"}
    for reason in found["reasons"]:
        assert reason.keys() == {"name", "detail", "line", "column"}
    assert bool(found["rewrites"]) == (found["executed"] != sql)


@pytest.mark.parametrize(
    ("sql", "code", "line", "column", "standing"),
    [
        ("", "sql.empty", None, None, None),
        ("SELECT nope FROM gl", "sql.unknown_column", 1, 8, None),
        ("SELECT *\nFROM notes", "sql.unknown_table", 2, 6, None),
        ("SELECT random() AS r FROM gl", "sql.random", 1, 8, "not_a_function_of_data"),
        ("DROP TABLE gl", "sql.write", 1, 1, None),
        ("SELECT '" + "x" * 40_000 + "' AS x", "sql.too_long", None, None, None),
    ],
)
def test_the_document_of_a_refused_query(sql, code, line, column, standing, document):
    found = document(sql)
    assert found["verdict"] == "refused"
    assert found.keys() == REFUSED
    assert (found["code"], found["standing"]) == (code, standing)
    assert (found["line"], found["column"]) == (line, column)
    assert bool(found["reasons"]) == (standing is not None)
    assert found["why"]
    assert found["way_out"]


@pytest.mark.parametrize(("sql", "status"), [(TIED, 0), ("SELECT now() AS t", 4)])
def test_a_program_reads_one_document_admitted_or_refused(sql, status, said, document):
    code, out, err = said(sql, "--json")
    assert (code, json.loads(out), err) == (status, document(sql), "")


def test_only_the_sources_named_may_be_read(said, document):
    assert document("SELECT line_id FROM bank", sources=["gl"])["code"] == "sql.unknown_table"
    assert set(document("SELECT line_id FROM gl", sources=["gl"])["snapshots"]) == {"gl"}
    for name, status, wrong in (
        ("notes", 2, "check.no_table"),
        ("nobody", 4, "catalog.unknown_source"),
    ):
        code, out, err = said(GOOD, "--source", name, "--json")
        assert (code, out, json.loads(err)["code"]) == (status, "", wrong)


def test_as_of_is_a_date(said):
    code, out, _ = said(GOOD, "--as-of", "2026-06-30", "--source", "gl", "--json")
    found = json.loads(out)
    assert (code, found["as_of"], set(found["snapshots"])) == (0, "2026-06-30", {"gl"})
    code, out, err = said(GOOD, "--as-of", "June", "--json")
    assert (code, out, json.loads(err)["code"]) == (2, "", "check.as_of")


def test_the_clock_shows_as_of(document):
    today = "SELECT line_id FROM bank WHERE booked <= current_date"
    assert document(today)["code"] == "sql.clock"
    found = document(today, as_of="2026-06-30")
    assert [r["name"] for r in found["rewrites"]] == ["as_of"]
    assert "2026-06-30" in found["executed"]


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("absent.sql", "check.missing"),
        ("notes", "check.unreadable"),
        ("--typo", "check.missing"),
        ("bad.sql", "check.not_utf8"),
        ("huge.sql", "check.too_large"),
        ("a\0b", "check.unreadable"),
    ],
)
def test_a_file_that_is_no_query_is_wrong_usage(file, code, here, capsys):
    (here / "bad.sql").write_bytes(b"SELECT '\xe9' AS e")
    (here / "huge.sql").write_bytes(b" " * 5_000_000)
    try:
        assert start(["check", file, "--json"]) == 2
    finally:
        (here / "bad.sql").unlink()
        (here / "huge.sql").unlink()
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["code"] == code


def test_bytes_of_standard_input_that_are_no_text(said):
    code, out, err = said(b"\xff", "--json")
    assert (code, out, json.loads(err)["code"]) == (2, "", "check.not_utf8")
    assert json.loads(err)["message"] == "byte 1 is not UTF-8"


def test_a_byte_order_mark_is_no_part_of_the_query_and_is_told(said, document):
    code, out, err = said(b"\xef\xbb\xbf" + GOOD.encode())
    assert (code, err) == (0, "")
    assert "  left out   the byte order mark before the text\n" in out
    assert document("\ufeff" + GOOD) == {**document(GOOD), "byte_order_mark": True}
    assert document(GOOD)["byte_order_mark"] is False
    assert document("\ufeff\ufeff" + GOOD)["code"] == "sql.non_ascii"
    assert document("\ufeffSELECT nope FROM gl")["column"] == 8


def test_a_source_that_is_no_longer_as_it_was_pinned_is_told(tmp_path, capsys, monkeypatch):
    folder = make(tmp_path / "w")
    (folder / "q.sql").write_text(GOOD)
    monkeypatch.chdir(folder)
    assert start(["init"]) == 0
    assert start(["snapshot"]) == 0

    def changed() -> tuple[dict[str, Any], str]:
        capsys.readouterr()
        assert start(["check", "q.sql", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["changed"]
        assert start(["check", "q.sql"]) == 0
        told = [line for line in capsys.readouterr().out.splitlines() if "  changed  " in line]
        return found, "\n".join(told)

    assert changed() == ({}, "")
    with open_workspace(folder) as workspace:
        file = folder / str(workspace.catalog.source("gl").table.file)
    was = file.read_bytes()
    file.write_bytes(was + b"\n")
    found, told = changed()
    assert found == {"gl": ["file"]}
    assert told.startswith("  changed    gl: its file changed since the snapshot")
    catalog = (folder / "tieout.toml").read_text()
    (folder / "tieout.toml").write_text(catalog + "[source.bank.column.booked]\nrange = ['', '']\n")
    file.unlink()
    found, told = changed()
    assert found == {"bank": ["declaration"], "gl": ["missing"]}
    assert "bank: its declaration in tieout.toml changed" in told
    file.write_bytes(was)
    (folder / "tieout.toml").write_text(catalog)
    assert changed() == ({}, "")


def test_nothing_is_written(said, here):
    before = files_below(here)
    said(GOOD)
    said(TIED, "--json")
    said("SELECT now() AS t")
    after = files_below(here)
    # SQLite's readers may leave its own empty companions; they hold nothing of a check.
    added = {name for name in after.keys() - before.keys() if after[name]}
    assert {n for n in added if not n.endswith("-shm")} == set()
    assert {n for n in before if before[n] != after[n]} == set()


def test_before_anything_is_pinned_it_says_how_to_pin(tmp_path, capsys, monkeypatch):
    folder = make(tmp_path / "w")
    (folder / "q.sql").write_text(GOOD)
    monkeypatch.chdir(folder)
    assert start(["check", "q.sql", "--json"]) == 10
    assert json.loads(capsys.readouterr().err)["code"] == "ledger.missing"
    assert start(["init"]) == 0
    capsys.readouterr()
    assert start(["check", "q.sql", "--json"]) == 10
    error = json.loads(capsys.readouterr().err)
    assert (error["code"], "`tieout snapshot`" in error["remedy"]) == ("source.not_pinned", True)
    assert start(["snapshot", "gl"]) == 0
    capsys.readouterr()
    assert start(["check", "q.sql"]) == 0
    assert capsys.readouterr().out.endswith("  left out   bank: not pinned yet\n")
    assert start(["check", "q.sql", "--source", "bank", "--json"]) == 10
    assert "snapshot bank" in json.loads(capsys.readouterr().err)["remedy"]


@pytest.mark.parametrize(
    ("line", "column", "shown", "under"),
    [
        ("SELECT x", 8, "SELECT x", "x"),
        ("\tSELECT x", 2, " SELECT x", "S"),
        ("SELECT '漢字' AS a, x", 19, "SELECT '漢字' AS a, x", None),
        ("x" * 500 + "y" + "z" * 500, 501, "…" + "x" * CONTEXT_CHARS + "y", "y"),
        ("SELECT", 7, "SELECT", None),
        ("\u202eSELECT", 2, "\\u{202E}SELECT", "S"),
    ],
)
def test_the_caret_stands_below_the_place(line, column, shown, under):
    text, caret = pointed(f"first\n{line}\nlast", 2, column)
    assert shown in text
    assert caret.rstrip("^") == " " * 4 + "│" + caret.split("│")[1].rstrip("^")
    if under is not None:
        assert text[caret.index("^")] == under
    if "漢" in line:  # each of the two takes two columns of a terminal
        assert caret.index("^") == text.index("x") + 2


@pytest.mark.slow
def test_a_clamp_is_recorded_shown_and_replayed(tmp_path, capsys, monkeypatch):
    held = "[source.bank.column.booked]\nrange = [2026-06-01, 2026-06-30]\n"
    folder = make(tmp_path / "w", catalog=CATALOG + held)
    asked = "SELECT sum(amount) AS total FROM bank WHERE booked >= '2020-01-01'"
    total = figure("t", "total", style="currency", currency="GBP", places=2)
    (folder / "p.json").write_text(plan(steps(sql("t", asked)), answer("It is {t}.", t=total)))
    monkeypatch.chdir(folder)
    assert start(["init"]) == 0
    assert start(["ask", "How much?", "--plan", "p.json", "--source", "bank"]) == 0
    with open_workspace(folder) as workspace:
        (row,) = (e.row for e in workspace.log().entries() if e.row.subject.endswith("/t"))
        kept = {p.role: workspace.store.get(p.address) for p in row.attachments}
        verdict = json.loads(kept["validation"])["verdict"]
        assert workspace.store.get(row.executed).decode() == asked.replace(
            "2020-01-01", "2026-06-01"
        )
        (rewrite,) = verdict["rewrites"]
        assert (rewrite["name"], rewrite["removed"]) == ("clamped_range", "'2020-01-01'")
        assert json.loads(kept["observation"])["rewrites"][0]["name"] == "clamped_range"
    capsys.readouterr()
    assert start(["replay", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agrees"] is True
    assert start(["verify"]) == 0
