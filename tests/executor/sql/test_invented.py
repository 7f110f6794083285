"""A hostile plan through the whole pipeline: invented numbers are delivered, and marked unsourced."""

from __future__ import annotations

import json

from tieout import init_workspace
from tieout.ledger.citation import Label

CSV = "id,amount,memo\n1,10.50,a\n2,20.25,b\n3,-4.75,a\n"
HOSTILE = {
    "rows": [
        ("a", "SELECT range AS n FROM range(123456)"),
        ("b", "SELECT count(*) AS n FROM a"),
    ],
    "limit": [
        ("a", "SELECT b.id FROM bank b, bank c, bank d ORDER BY ALL LIMIT 23"),
        ("b", "SELECT count(*) AS n FROM a"),
    ],
    "constant": [
        ("a", "SELECT CAST(NULL IS NULL AS INTEGER) AS one"),
        ("b", "SELECT one + one + one AS n FROM a"),
    ],
    "conventions": [("a", "SELECT 7 * 7 * 12 AS x"), ("b", "SELECT x AS n FROM a")],
    "numbering": [
        ("a", "SELECT row_number() OVER (ORDER BY b.id, c.id) AS n FROM bank b, bank c"),
        ("b", "SELECT max(n) AS n FROM a WHERE n <= 5"),
    ],
    "precision": [
        ("a", "SELECT CAST(count(*) AS DECIMAL(38,30)) AS d FROM bank"),
        ("b", "SELECT length(CAST(d AS VARCHAR)) AS n FROM a"),
    ],
    "glue": [
        ("a", "SELECT '4' AS s FROM bank WHERE id = 1"),
        ("b", "SELECT CAST(s || s AS INTEGER) AS n FROM a"),
    ],
}
HONEST = [
    ("a", "SELECT memo, sum(amount) AS s FROM bank WHERE amount > 3 GROUP BY memo"),
    ("top", "SELECT memo, s FROM a ORDER BY s DESC LIMIT 1"),
    ("b", "SELECT count(*) AS n FROM bank b JOIN top ON top.memo = b.memo"),
]


def plan(*questions: tuple[str, list[tuple[str, str]]]) -> str:
    """questions.toml over plan files of these names."""
    return "\n".join(
        f'[[question]]\nid = "{name}"\ntext = "How many?"\nsources = ["bank"]\n'
        f'plan = "{name}.json"\n'
        for name, _ in questions
    )


def test_invented_numbers_are_marked_and_honest_ones_are_not(tmp_path):
    questions = [*HOSTILE.items(), ("honest", HONEST)]
    (tmp_path / "bank.csv").write_text(CSV)
    (tmp_path / "tieout.toml").write_text(
        '[workspace]\nname = "t"\n[source.bank]\nfile = "bank.csv"\nkey = ["id"]\n'
    )
    (tmp_path / "questions.toml").write_text(plan(*questions))
    for name, steps in questions:
        figure = {"step": "b", "row": {}, "column": "n", "display": {"style": "number"}}
        turns = [
            {"steps": [{"do": "sql", "id": step, "sql": sql} for step, sql in steps]},
            {"answer": {"prose": "There are {n}.", "figures": {"n": figure}}},
        ]
        (tmp_path / f"{name}.json").write_text(json.dumps({"turns": turns}))
    with init_workspace(tmp_path) as workspace:
        result = workspace.run(tmp_path / "questions.toml")
    labels = {
        delivered.report.question.id: [f.label for f in delivered.report.answer.figures]
        for delivered in result.delivered
    }
    expected = dict.fromkeys(HOSTILE, [Label.UNSOURCED]) | {"honest": [Label.SOURCED]}
    assert labels == expected
