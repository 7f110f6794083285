"""Each layer alone against every attack: two classes of layers stop each, and usual queries pass."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path

import pytest
from support.layer_matrix import classes, matrix, own, replaced, section, shared, table
from support.layers import GATES, Layer, Layers, granted, lying, plant

from tieout.executor.sandbox import LAYERS, Sandbox
from tieout.executor.sql import functions, session
from tieout.executor.sql.examine import _tree, granted_of
from tieout.executor.sql.refusal import SqlRefused, Text
from tieout.executor.sql.second import check_second, formatted, read_second
from tieout.executor.sql.tree import Granted, check_tree

HERE = Path(__file__).parent
SHARED = os.environ.get("TIEOUT_SHARED")
REWRITE = os.environ.get("REWRITE_LAYERS")
EXCEPTIONS = json.loads((HERE / "exceptions.json").read_text())
USUAL = [json.loads(line)["sql"] for line in (HERE / "usual.jsonl").read_text().splitlines()]
SAMPLE = own(HERE)[::17]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("canaries")


@pytest.fixture(scope="module")
def layers(folder):
    plant(folder)
    with Layers(folder) as running:
        yield running


@pytest.fixture(scope="module")
def reader():
    """DuckDB's tree of a text, for the comparison of both parsers."""
    engine = session.connect()
    for name, table_ in granted().items():
        session.declare(engine, name, {c.name: c.type for c in table_.columns})
    session.lock(engine, memory_bytes=1 << 30)
    yield lambda sql: _tree(engine, Text(sql))
    engine.close()


def compared(sql, reader):
    """Both gates over one text, with the comparison."""
    text = Text(sql)
    root = reader(sql)
    seen = check_tree(text, root, granted_of(granted()))
    return check_second(text, root, seen)


def weak(found):
    """Attacks that fewer than two classes refuse, without those that are listed."""
    return {
        i: sorted(classes(answers))
        for i, answers in found.items()
        if len(classes(answers)) < 2 and i not in EXCEPTIONS
    }


def whole_sandbox():
    """Whether this kernel has both layers of the sandbox; asked in a child."""
    pid = os.fork()
    if not pid:
        mode = Sandbox(LAYERS, ctypes.CDLL(None, use_errno=True)).probe()
        os._exit(0 if "landlock" in mode and "seccomp" in mode else 1)
    return os.waitpid(pid, 0)[1] == 0


def check_document(repository, name, attacks, found):
    document = repository / "docs" / "layers.md"
    if REWRITE:
        document.write_text(replaced(document.read_text(), name, table(attacks, found)))
    if whole_sandbox():
        assert section(document.read_text(), name) == table(attacks, found)


def test_a_sample_is_stopped_by_two_classes(layers, folder):
    before = lying(folder)
    assert weak(matrix(layers, SAMPLE, folder)) == {}
    assert lying(folder) == before


@pytest.mark.slow
def test_every_attack_of_ours_is_stopped_by_two_classes(layers, folder, repository):
    before = lying(folder)
    found = matrix(layers, own(HERE), folder)
    assert weak(found) == {}
    needless = {i for i in EXCEPTIONS if i not in found or len(classes(found[i])) > 1}
    assert needless == set()
    assert lying(folder) == before
    check_document(repository, "own", own(HERE), found)


@pytest.mark.slow
def test_every_attack_of_the_shared_list_is_stopped_by_two_classes(layers, folder, repository):
    if not SHARED:
        pytest.skip("TIEOUT_SHARED is not set: the shared attacks are not here")
    before = lying(folder)
    attacks = shared(Path(SHARED))
    found = matrix(layers, attacks, folder)
    assert weak(found) == {}
    assert lying(folder) == before
    check_document(repository, "shared", attacks, found)


def test_the_layers_do_not_refuse_everything(layers):
    sql = "SELECT memo, sum(amt) AS s FROM bank GROUP BY memo ORDER BY memo"
    answers = {layer: layers.alone(layer, sql) for layer in Layer}
    assert {layer: a.by for layer, a in answers.items()} == dict.fromkeys(Layer, "")
    assert answers[Layer.ENGINE].digest == answers[Layer.SYSTEM].digest != ""
    assert layers.ask(sql, gates=GATES, run="bare").digest == answers[Layer.ENGINE].digest


def test_what_a_layer_is_there_for_it_refuses(layers, folder):
    """The harness tells the layers apart: each text is stopped where it should be, not elsewhere."""
    secret = "SELECT * FROM secret_hr"
    assert layers.alone(Layer.ENGINE, secret).said == "CatalogException"
    assert not layers.alone(Layer.SYSTEM, secret).refused
    write = f"COPY bank TO '{folder}/out.csv'"
    assert layers.alone(Layer.ENGINE, write).said == "PermissionException"
    assert layers.alone(Layer.SYSTEM, write).said == "IOException"
    assert not layers.ask(write, run="bare").refused
    assert (folder / "out.csv").read_text().startswith("id,amt")
    (folder / "out.csv").unlink()
    assert not layers.alone(Layer.TEXT, write).refused
    assert layers.alone(Layer.ENGINE, "SELECT sleep_ms(60000)").said.startswith("signal")


@pytest.mark.parametrize("sql", USUAL)
def test_usual_queries_pass_both_parsers(sql, reader):
    try:
        root = compared(sql, reader)
    except SqlRefused as refused:
        # What is no function of the data is the verdict's to settle, not authority's.
        assert refused.code.startswith("sql.unordered")
    else:
        assert formatted(root)


def test_sqlglot_alone_admits_each_usual_query():
    refused = []
    for sql in USUAL:
        try:
            read_second(Text(sql), granted_of(granted()))
        except SqlRefused as error:
            refused.append((sql, error.code))
    assert refused == []


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        # sqlglot's own parser turns list(x)[1] into the list [1]: what stood inside would be lost.
        ("SELECT list((SELECT max(name) FROM secret_hr) ORDER BY id)[1] AS a FROM bank", "table"),
        ("SELECT array(SELECT name FROM secret_hr)[1] AS a", "function"),
        # tables that a walk over scopes misses
        ("SELECT 1 AS a FROM bank JOIN ledger ON (SELECT TRUE FROM secret_hr)", "table"),
        ("WITH s AS (SELECT 1 AS x) SELECT x FROM s, secret_hr AS s2", "table"),
        ("WITH RECURSIVE s AS (SELECT 1 AS x INTERSECT SELECT * FROM s) SELECT x FROM s", "table"),
        ("SELECT (WITH c AS (SELECT 1 AS x) SELECT x FROM c) AS a, x FROM c", "table"),
        ("PIVOT secret_hr ON name IN ('x') USING sum(salary)", "table"),
        ("SELECT system.main.sum(id) AS s FROM bank", "function"),
    ],
)
def test_sqlglot_alone_sees_what_hides(sql, code):
    with pytest.raises(SqlRefused) as caught:
        read_second(Text(sql), granted_of(granted()))
    assert caught.value.code == {"table": "sql.unknown_table", "function": "sql.function"}[code]


def test_sqlglot_alone_names_the_place():
    with pytest.raises(SqlRefused) as caught:
        read_second(Text("SELECT id,\n       now() AS n\nFROM bank"), granted_of(granted()))
    assert (caught.value.code, caught.value.line, caught.value.column) == ("sql.clock", 2, 8)


def test_a_recursive_query_sees_itself_and_those_before(reader):
    sql = (
        "WITH RECURSIVE a AS (SELECT 1 AS n), b AS (SELECT n FROM a UNION ALL "
        "SELECT n + 1 FROM b WHERE n < 3) SELECT b.n FROM a, b"
    )
    assert compared(sql, reader)


def test_functions_are_named_as_written(reader):
    """Names that sqlglot gives one class keep their own policy: any other word is refused."""
    for name in ("list_aggr", "approx_count_distinct", "today", "version", "encode_x"):
        with pytest.raises(SqlRefused):
            read_second(Text(f"SELECT {name}(memo) AS a FROM bank"), granted_of(granted()))
    for name in ("lcase", "lower", "ucase", "upper"):
        assert functions.is_open(name)
        assert compared(f"SELECT {name}(memo) AS a FROM bank", reader)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda seen, root: seen.refs.update(["ledger"]),
        lambda seen, root: seen.refs.subtract(["bank"]),
        lambda seen, root: seen.tables.add("ledger"),
        lambda seen, root: seen.tables.clear(),
        lambda seen, root: seen.ctes.add("c"),
        lambda seen, root: seen.functions.add("read_text"),
        lambda seen, root: seen.functions.discard("lower"),
        lambda seen, root: seen.functions.add("date_part"),
        lambda seen, root: seen.table_functions.add("unnest"),
        lambda seen, root: root["select_list"].append(root["select_list"][0]),
        lambda seen, root: root["modifiers"].clear(),
        lambda seen, root: root.update(type="SET_OPERATION_NODE"),
    ],
)
def test_parsers_that_differ_admit_nothing(tamper, reader):
    """What only one of them saw, of tables, names, functions or shape, refuses the query."""
    sql = "SELECT lower(memo) AS m, count(*) AS n FROM bank GROUP BY 1 ORDER BY 1 LIMIT 3"
    text, root = Text(sql), reader(sql)
    seen = check_tree(text, root, granted_of(granted()))
    assert check_second(text, root, seen)
    tamper(seen, root)
    with pytest.raises(SqlRefused) as caught:
        check_second(text, root, seen)
    assert caught.value.code == "sql.parsers_disagree"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT id FROM bank\u2028", "sql.non_ascii"),
        ("SELECT id AS caf\u00e9 FROM bank", "sql.non_ascii"),
        ("SELECT id FROM bank -- \u202e", "sql.non_ascii"),
        ("SELECT 'a\x01' AS a", "sql.control_character"),
        ("SELECT 1 AS " + "a" * 1_001, "sql.too_long"),
        ("SELECT " + "1," * 1_001 + "1", "sql.too_long"),
        ("SELECT " + "(" * 400 + "1" + ")" * 400, "sql.too_complex"),
        ("SELECT FROM bank", "sql.parse"),
        ("PIVOT bank ON memo USING sum(amt)", "sql.construct"),
        ("SELECT * FROM bank UNPIVOT (v FOR k IN (id, acct_key))", "sql.construct"),
        (
            "WITH " + ", ".join(f"c{n} AS (SELECT 1 AS a)" for n in range(31)) + " SELECT 1",
            "sql.too_complex",
        ),
        ("WITH c AS (SELECT 1 AS a) SELECT 1 AS b FROM c, c d, c e, c f, c g", "sql.too_complex"),
    ],
)
def test_sqlglot_alone_holds_the_rules_of_texts_and_shapes(sql, code):
    with pytest.raises(SqlRefused) as caught:
        read_second(Text(sql), granted_of(granted()))
    assert caught.value.code == code


@pytest.mark.parametrize("sql", ["SELECT 'caf\u00e9' AS a", 'SELECT id AS "caf\u00e9" FROM bank'])
def test_sqlglot_alone_admits_any_letter_in_quotes(sql):
    assert read_second(Text(sql), granted_of(granted()))


WORDS = (
    *("date", "time", "timestamp", "value", "type", "status", "year", "month", "day", "period"),
    *("currency", "rate", "percent", "level", "position", "account", "user", "role", "name", "key"),
    *(
        "index",
        "rank",
        "number",
        "text",
        "comment",
        "source",
        "target",
        "start",
        "total",
        "balance",
    ),
    *(
        "debit",
        "credit",
        "reference",
        "code",
        "class",
        "category",
        "share",
        "unit",
        "version",
        "first",
    ),
    *("count", "sum", "last", "open", "high", "low", "state", "row", "range", "title", "section"),
)


@pytest.fixture(scope="module")
def worded():
    """DuckDB's tree of a text over a table whose columns have the names of keywords."""
    engine = session.connect()
    session.declare(engine, "t", dict.fromkeys(WORDS, "INTEGER"))
    session.lock(engine, memory_bytes=1 << 30)
    yield lambda sql: _tree(engine, Text(sql))
    engine.close()


@pytest.mark.parametrize("word", WORDS)
def test_columns_may_have_the_names_of_keywords(word, worded):
    """What people call their columns: both parsers read it, and agree."""
    allowed = Granted(columns={"t": dict.fromkeys(WORDS, "INTEGER")}, keys={"t": frozenset()})
    for sql in (
        f"SELECT {word} FROM t WHERE t.{word} > 0 ORDER BY {word}",
        f"SELECT max({word}) AS {word} FROM t GROUP BY {word}",
        f"SELECT x.{word} FROM (SELECT {word} FROM t) x JOIN t USING ({word})",
    ):
        root = worded(sql)
        seen = check_tree(Text(sql), root, allowed)
        assert check_second(Text(sql), root, seen)
