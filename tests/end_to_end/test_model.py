"""A hostile or broken model on a loopback server: whatever it says, what is delivered is labelled."""

from __future__ import annotations

import json

import pytest
from end_to_end.small import (
    ANSWER,
    FOUND,
    TOTALS,
    answer,
    figure,
    make,
    sql,
    steps,
)
from end_to_end.stage import Stage, observations, reading, segments
from support.messages_server import (
    bad_request,
    context_exceeded,
    malformed,
    overloaded,
    refusal,
    text,
    truncated,
)

from tieout.ledger.row import Kind, Status

SOON = {"retry_after": "0.01"}


def test_plans_over_several_turns_with_what_it_is_shown(stage):
    def look(seen):
        assert seen["bank_total"]["outcome"] == "complete"
        (row,) = seen["bank_total"]["first_rows"]
        assert row["cells"] == [["total", "72.50"]]
        return steps(TOTALS[1], TOTALS[2])

    def conclude(seen):
        assert seen["tie"]["first_rows"][0]["cells"] == [["difference", "0.01"]]
        return ANSWER

    played = stage.ask(steps(TOTALS[0]), reading(look), reading(conclude))
    report = played.report
    assert report["status"] == "answered"
    assert report["prose"] == "The statement has GBP 72.50, the ledger GBP 72.49: 0.01 apart."
    assert [(f["value"], f["label"], f["flags"]) for f in report["figures"]] == [
        ("72.50", "sourced", ["computed", "unit_typed"]),
        ("72.49", "sourced", ["computed", "unit_typed"]),
        ("0.01", "sourced", ["computed"]),
    ]
    assert [n["label"] for n in report["numbers"]] == ["sourced"] * 3
    assert report["refusals"] == []
    assert report["unused_results"] == []
    (last,) = [e.row for e in played.rows(Kind.MODEL_REPLY)][-1:]
    assert last.model.id == "claude-test-1"
    assert (last.model.input_tokens, last.model.output_tokens) == (11, 7)
    assert last.model.stop_reason == "end_turn"
    assert last.model.request_id
    assert last.model.base_url == stage.server.base_url


def test_overloaded_twice_then_answered_with_both_attempts_kept(stage):
    played = stage.ask(overloaded(**SOON), overloaded(**SOON), steps(*TOTALS), ANSWER)
    assert played.report["status"] == "answered"
    first = played.rows(Kind.MODEL_REPLY)[0].row
    assert [p.role for p in first.attachments if p.role.startswith("attempt:")] == [
        "attempt:1:529",
        "attempt:2:529",
        "attempt:3:200",
    ]
    assert len({r.body for r in played.requests[:3]}) == 1


@pytest.mark.parametrize(
    ("behaviour", "code", "kind"),
    [
        (refusal("not this"), "model.refusal", Kind.MODEL_REPLY),
        (truncated('{"steps": [{"do": "sq'), "model.max_tokens", Kind.MODEL_REPLY),
        (context_exceeded(), "model.context_exceeded", Kind.MODEL_REPLY),
        (malformed(), "model.unusable_reply", Kind.MODEL_REPLY),
        (bad_request("model: unknown"), "model.bad_request", Kind.FAILURE),
    ],
    ids=["refusal", "truncated", "context", "malformed", "bad request"],
)
def test_a_reply_that_cannot_be_read_as_a_plan_is_an_outcome(stage, behaviour, code, kind):
    played = stage.ask(steps(TOTALS[0]), behaviour)
    assert played.report["status"] == "failed"
    assert played.report["code"] == code
    (row,) = [e.row for e in played.rows(kind) if e.row.outcome.status is Status.FAILED]
    assert row.outcome.code == code
    # What was found out before stands in the report, and the bytes of the reply are kept.
    assert [s["subject"] for s in played.report["steps"]] == ["ask/t1/bank_total"]
    assert row.deterministic_output or row.attachments
    assert not played.result.complete


def test_a_truncated_plan_is_not_run_though_it_parses(stage):
    played = stage.ask(truncated(steps(TOTALS[0])))
    assert played.report["code"] == "model.max_tokens"
    assert played.rows(Kind.SQL) == []


def test_a_server_that_stays_overloaded_ends_the_question_with_every_attempt(stage):
    played = stage.ask(*[overloaded(**SOON)] * 3)
    assert played.report["code"] == "model.overloaded"
    (row,) = [e.row for e in played.rows(Kind.FAILURE)]
    assert len(row.attachments) == 3
    assert len(played.requests) == 3


@pytest.mark.parametrize(
    ("reply", "code", "line", "column"),
    [
        ("I will look.", "reply.not_json", 1, 1),
        ('{"steps": [\n  {"do": "sql" "id": "a"}]}', "reply.not_json", 2, 16),
        ('{"steps": []}\nDone!', "reply.not_json", 2, 1),
        ('{"steps": [], "tools": []}', "plan.shape", 1, 24),
        ('```json\n{"steps": [\n {"do": "shell", "id": "a"}]}\n```', "plan.field", 3, 2),
        (steps(sql("a", "SELECT 1 AS x", exec="rm")), "plan.unknown_field", 1, 69),
        ('{"steps": [], "steps": []}', "reply.repeated_key", 1, 15),
    ],
    ids=["words", "comma", "after", "both", "verb", "field", "repeated"],
)
def test_a_text_that_is_no_plan_goes_back_with_its_place(stage, reply, code, line, column):
    seen = []

    def corrected(request):
        shown = segments(request)
        assert ("plan", reply) in [(role, part) for role, _, part in shown]
        seen.append(observations(request)["plan"])
        return steps(*TOTALS)

    played = stage.ask(reply, corrected, ANSWER)
    assert played.report["status"] == "answered"
    (told,) = seen
    assert (told["code"], told["line"], told["column"]) == (code, line, column)
    assert told["message"]
    assert told["way_out"]
    (row,) = [e.row for e in played.rows(Kind.REFUSAL)]
    assert (row.outcome.position.line, row.outcome.position.column) == (line, column)
    (listed,) = played.report["refusals"]
    assert listed["code"] == code


REFUSED_SQL = {
    "DELETE FROM bank": "sql.write",
    "CREATE TABLE t AS SELECT 1 AS x": "sql.write",
    "COPY bank TO '/tmp/out.csv'": "sql.file_access",
    "SELECT * FROM read_csv('/etc/passwd')": "sql.file_access",
    "SELECT * FROM '/etc/passwd'": "sql.file_access",
    "SELECT content FROM read_text('bank.csv')": "sql.file_access",
    "SELECT now() AS x": "sql.clock",
    "SELECT current_date AS x": "sql.clock",
    "SELECT random() AS x": "sql.random",
    "SELECT nextval('s') AS x": "sql.write",
    "SELECT 1 AS x; SELECT 2 AS x": "sql.two_statements",
    "SELECT amount FROM payroll": "sql.unknown_table",
    "SELECT salary FROM bank": "sql.unknown_column",
    "SELECT getenv('ANTHROPIC_API_KEY') AS x": "sql.function",
    "ATTACH '/tmp/x.db'": "sql.file_access",
    "PRAGMA database_list": "sql.setting",
    "INSTALL httpfs": "sql.file_access",
    "SELECT \x00 AS x": "sql.control_character",
}


def test_sql_that_does_more_than_read_its_tables_is_refused(stage):
    asked = [sql(f"bad{n}", said) for n, said in enumerate(REFUSED_SQL)]

    def give_up(seen):
        told = {f"bad{n}": code for n, code in enumerate(REFUSED_SQL.values())}
        assert {step: seen[step]["code"] for step in told} == told
        assert all(seen[step]["message"] and seen[step]["way_out"] for step in told)
        return answer("It cannot be told.")

    before = {path: path.stat() for path in stage.folder.iterdir() if path.is_file()}
    played = stage.ask(steps(*asked), reading(give_up), sources=["bank"])
    rows = [e.row for e in played.rows(Kind.REFUSAL)]
    assert [row.raw_llm_instruction for row in rows] == [json.dumps(step) for step in asked]
    assert all(row.executed is None and row.deterministic_output is None for row in rows)
    assert all(row.outcome.status is Status.REFUSED for row in rows)
    assert played.report["status"] == "answered"
    assert {path: path.stat() for path in stage.folder.iterdir() if path.is_file()} == before


@pytest.mark.slow
def test_a_query_that_never_ends_is_stopped_at_its_bounds(tmp_path):
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) AS n FROM r"
    crossed = "SELECT count(*) AS n FROM " + " CROSS JOIN ".join(f"bank AS b{i}" for i in range(40))
    with Stage(
        make(tmp_path / "w", limits="step_seconds_max = 2\nmemory_mib_max = 256\n")
    ) as stage:
        played = stage.ask(
            steps(sql("deep", endless), sql("wide", crossed), TOTALS[0]),
            answer("The statement has {bank}.", bank=figure("bank_total", "total")),
        )
        outcomes = {
            e.row.subject: e.row.outcome.code for e in played.rows(Kind.FAILURE, Kind.REFUSAL)
        }
        assert outcomes["ask/t1/wide"] in {"limit.seconds", "limit.memory"}
        assert outcomes["ask/t1/deep"] in {"limit.seconds", "limit.memory", "sql.recursive"}
        assert played.report["status"] == "answered"
        assert stage.workspace.verify().holds


def test_a_failed_step_fails_what_needs_it_and_nothing_else(stage):
    def look(seen):
        assert seen["lost"]["code"] == "sql.unknown_column"
        assert seen["needs"]["code"] == "step.dependency_failed"
        assert "'lost'" in seen["needs"]["message"]
        assert seen["bank_total"]["outcome"] == "complete"
        # The same id may be tried again after a failure.
        return steps(sql("lost", "SELECT sum(amount) AS total FROM gl"))

    played = stage.ask(
        steps(
            sql("lost", "SELECT sum(amonut) AS total FROM gl"),
            TOTALS[0],
            sql("needs", "SELECT total + 1 AS more FROM lost"),
        ),
        reading(look),
        answer("{a} and {b}", a=figure("bank_total", "total"), b=figure("lost", "total")),
    )
    assert played.report["status"] == "answered"
    assert played.report["prose"] == "72.50 and 72.49"
    assert [r["code"] for r in played.report["refusals"]] == [
        "sql.unknown_column",
        "step.dependency_failed",
    ]


def test_refused_too_often_it_is_delivered_failed_with_all_that_is_known(stage):
    played = stage.ask(steps(TOTALS[0]), *["no plan"] * 4)
    report = played.report
    assert (report["status"], report["code"]) == ("failed", "limit.refusals")
    assert [s["subject"] for s in report["steps"]] == ["ask/t1/bank_total"]
    assert len(report["refusals"]) == 4
    assert report["unused_results"] == ["bank_total"]


@pytest.mark.parametrize(
    ("limits", "replies", "code"),
    [
        ("turns_max = 2\n", [steps(TOTALS[0]), steps(TOTALS[1])], "limit.turns"),
        ("steps_max = 2\n", [steps(*TOTALS)], "limit.steps"),
        (
            "question_tokens_max = 1000\n",
            [text(steps(TOTALS[0]), usage={"input_tokens": 900, "output_tokens": 101})],
            "limit.tokens",
        ),
        ("reply_chars_max = 1000\n", [answer("x" * 1_000)], "limit.reply"),
        ("prompt_chars_max = 10000\n", ["z" * 15_000], "limit.prompt"),
    ],
    ids=["turns", "steps", "tokens", "reply", "prompt"],
)
def test_a_bound_is_an_outcome(tmp_path, limits, replies, code):
    with Stage(make(tmp_path / "w", limits=limits)) as stage:
        played = stage.ask(*replies)
        assert (played.report["status"], played.report["code"]) == ("failed", code)
        (row,) = [e.row for e in played.rows(Kind.REPORT) if e.row.subject == "ask"]
        assert row.outcome.code == code


def test_a_number_typed_after_a_refusal_is_delivered_unsourced_beside_it(stage):
    forged = {"do": "extract", "id": "people", "from": "hits", "quote": "stood at 99,999 people"}
    played = stage.ask(FOUND, steps(forged), answer("About 99,999 people live there."))
    report = played.report
    assert report["status"] == "answered_with_unsourced"
    number = played.number("99,999")
    assert (number["label"], number["reason"], number["figure"]) == ("unsourced", "uncited", "")
    assert [r["subject"] for r in report["refusals"]] == ["ask/t2/people"]
    assert report["refusals"][0]["code"].startswith("quote.")


def test_a_right_number_that_was_typed_is_unsourced_and_says_where_it_stands(stage):
    played = stage.ask(
        steps(*TOTALS), answer("It is 72.50 against {b}.", b=figure("gl_total", "total"))
    )
    number = played.number("72.50")
    assert (number["label"], number["reason"]) == ("unsourced", "uncited")
    (candidate,) = number["candidates"]
    address = next(
        s["address"] for s in played.report["steps"] if s["subject"].endswith("bank_total")
    )
    assert candidate.startswith(f"{address}#")
    assert candidate.endswith(":total")
    assert played.number("72.49")["label"] == "sourced"


def test_what_is_glued_to_a_figure_alters_it(stage):
    glued = [
        "{x}000",
        "-{x}",
        "{x}%",
        "{x} million",
        "({x})",
        "{x}.5",
        "1{x}",
        "${x}",
        "{x}k",
        "{x}{x}",
    ]
    prose = "\n".join(f"It is {said} ." for said in [*glued, "{x}", "{x},"])
    played = stage.ask(steps(TOTALS[0]), answer(prose, x=figure("bank_total", "total")))
    assert played.report["status"] == "answered_with_unsourced"
    lines = played.report["prose"].splitlines()
    found: dict[int, set[tuple[str, str | None]]] = {}
    for number in played.report["numbers"]:
        line = played.report["prose"].count("\n", 0, number["start"])
        found.setdefault(line, set()).add((number["label"], number["reason"]))
    assert {lines[n]: found[n] for n in range(10)} == {
        lines[n]: {("unsourced", "altered")} for n in range(10)
    }
    assert found[10] == found[11] == {("sourced", None)}


def test_an_answer_that_cites_nothing_goes_back_and_may_be_corrected(stage):
    def corrected(seen):
        assert [p["code"] for p in seen["answer"]["problems"]] == [
            "answer.unknown_step",
            "answer.unknown_column",
            "answer.no_row",
            "answer.unknown_placeholder",
        ]
        return answer("It is {a}.", a=figure("bank_total", "total"))

    played = stage.ask(
        steps(TOTALS[0]),
        answer(
            "{a} {b} {c} {d}",
            a=figure("nothing", "total"),
            b=figure("bank_total", "sum"),
            c=figure("bank_total", "total", {"total": "1.00"}),
        ),
        reading(corrected),
    )
    assert played.report["status"] == "answered"
    assert [r["code"] for r in played.report["refusals"]] == ["answer.unknown_step"]
    assert [e.row.outcome.status for e in played.rows(Kind.ANSWER)] == [Status.REFUSED, Status.DONE]


def test_an_answer_that_cites_nothing_is_delivered_failed_in_the_end(stage):
    bad = answer("{a} and {b}.", a=figure("bank_total", "total"), b=figure("bank_total", "sum"))
    played = stage.ask(steps(TOTALS[0]), *[bad] * 4)
    report = played.report
    assert (report["status"], report["code"]) == ("failed", "answer.not_filled")
    assert report["prose"] == "72.50 and [b: nothing to show]."
    assert played.figure("a")["label"] == "sourced"
    assert report["problems"]
    assert report["problems"][0].startswith("answer.unknown_column: b: ")
    assert len(report["refusals"]) == 4
