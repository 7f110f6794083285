"""The rules of the house that no formatter knows, one function each, over the tracked files.

A rule yields findings as text. Exceptions are named here with their reason; one that is no
longer needed is a finding too. `test_a_rule_can_fail` gives each rule a file that breaks it.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("artifacts/", "ledger/", "executor/", "planner/")
PRODUCT = (*ROOMS, "src/")
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
COLUMNS_MAX = 100
FILE_BYTES_MAX = 300_000
REQUIRED = ("README.md", "CHANGELOG.md", "DECISIONS.md", "LICENSE", "Makefile", ".ci/run")

KNOWN_BY = {
    "duckdb": ("executor/",),
    "sqlglot": ("executor/",),
    "boto3": ("artifacts/",),
    "botocore": ("artifacts/",),
    "anthropic": ("planner/claude.py",),
    "apsw": ("ledger/",),
}
"""Which part of the product may import a library; tests and bench may import all."""

TIME_AND_CHANCE = {
    "executor/clock.py": "the only source of time and ids",
    "executor/forked.py": "a deadline for a child; nothing of it is recorded",
    "planner/claude.py": "waiting between tries; both functions are arguments with these defaults",
    "artifacts/s3.py": "waiting between tries; the function is an argument with this default",
    "artifacts/layers.py": "faults for tests, drawn from a seed that is an argument",
}
WRITERS = {
    "artifacts/durable.py": "the only file writes",
    "executor/engine.py": "engine files are a cache; tables go through memory files",
    "ledger/sqlite_file.py": "the database file writes through its own engine",
    "ledger/writer_lock.py": "the lock is a file of its own and holds nothing",
    "src/tieout/output.py": "standard output after its reader has gone",
}
WRITING_METHODS = frozenset(
    {
        "write_text",
        "write_bytes",
        "mkdir",
        "unlink",
        "rename",
        "rmdir",
        "touch",
        "symlink_to",
        "hardlink_to",
    }
)
WRITING_MODULES = frozenset({"shutil", "tempfile"})
WRITING_OS = frozenset(
    {
        "open",
        "link",
        "symlink",
        "rename",
        "replace",
        "unlink",
        "remove",
        "mkdir",
        "makedirs",
        "rmdir",
        "truncate",
    }
)
READING_SHUTIL = frozenset({"disk_usage", "which", "get_terminal_size"})
NAMES_BANNED = frozenset({"util", "utils", "helper", "helpers", "manager", "common", "misc"})
MONEY = ("executor/ingest/", "executor/number", "executor/extract.py", "planner/display.py")


@dataclass(frozen=True)
class File:
    """A tracked file. name: relative to the repository, with slashes."""

    name: str
    payload: bytes

    @cached_property
    def text(self) -> str:
        return self.payload.decode("utf-8", "replace")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def code(self) -> bool:
        return self.name.endswith(".py")

    @property
    def product(self) -> bool:
        return self.code and self.name.startswith(PRODUCT)

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and full name of every import, wherever it stands."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)


Rule = Callable[[File], Iterator[str]]


def sizes(file: File) -> Iterator[str]:
    if len(file.payload) > FILE_BYTES_MAX:
        yield f"{len(file.payload)} bytes; {FILE_BYTES_MAX} are the most"
    if not file.code:
        return
    lines = file.text.splitlines()
    if len(lines) > FILE_LINES_MAX:
        yield f"{len(lines)} lines; split it below {FILE_LINES_MAX}"
    for node in ast.walk(file.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"{node.name} has {length} lines; split it below {FUNCTION_LINES_MAX}"
    if not file.name.startswith("tests/"):
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                yield f"line {number} has {len(line)} columns"


def first_line(file: File) -> Iterator[str]:
    if file.code and file.payload and not ast.get_docstring(file.tree):
        yield "the first line does not say what the file is responsible for"


def names(file: File) -> Iterator[str]:
    if file.code and Path(file.name).stem in NAMES_BANNED:
        yield "a name that says nothing; name what it does"


def words(file: File) -> Iterator[str]:
    if file.name == "tests/test_tidy.py":
        return
    for pattern, why in (
        (r"\b(TODO|FIXME|XXX)\b", "do it or write it down as an issue"),
        (r"pypi\.org|pythonhosted\.org|registry\.npmjs\.org|test\.pypi", "a registry's host"),
        (r"(?<![\w.:/-])/(home|root|Users|work)/\w", "a path of one machine"),
    ):
        for found in re.finditer(pattern, file.text):
            line = file.text.count("\n", 0, found.start()) + 1
            yield f"line {line}: {found[0]!r}: {why}"
    if file.name.startswith("requirements") and re.search(r"(?m)^-|://| @ ", file.text):
        yield "a lock names a place to install from"


def labels(file: File) -> Iterator[str]:
    """Nothing is called verified or correct: a label says where a value came from."""
    if not file.name.startswith(("planner/", "src/", "ledger/citation.py")) or not file.code:
        return
    said = [n for n in ast.walk(file.tree) if isinstance(n, ast.Constant)]
    for node in said:
        if isinstance(node.value, str) and re.search(
            r"(?i)\bverified\b|^correct$|\b(is|are) correct\b", node.value
        ):
            yield f"line {node.lineno}: a word that promises more than a source"


def imports(file: File) -> Iterator[str]:
    if not file.product:
        return
    for line, name in file.imports():
        allowed = KNOWN_BY.get(name.split(".")[0])
        if allowed is not None and not file.name.startswith(allowed):
            yield f"line {line}: only {', '.join(allowed)} may import {name}"


def time_and_chance(file: File) -> Iterator[str]:
    if not file.product:
        return
    found = [
        f"line {line}: {name}"
        for line, name in file.imports()
        if name.split(".")[0] in ("time", "random", "uuid", "secrets")
    ]
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today", "urandom"):
            owner = ast.unparse(node.value)
            if owner.split(".")[-1] in ("datetime", "date", "os", "dt"):
                found.append(f"line {node.lineno}: {owner}.{node.attr}")
    yield from excepted(file, found, TIME_AND_CHANCE, "only clock.py knows time and chance")


def file_writes(file: File) -> Iterator[str]:
    if file.product:
        found = [f"line {call.lineno}: {ast.unparse(call.func)}" for call in written_by(file)]
        yield from excepted(file, found, WRITERS, "only durable.py writes files")


def written_by(file: File) -> Iterator[ast.Call]:
    """Calls that may write a file: by name, so that none is missed; some read."""
    for call in file.calls():
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name == "open" and opens_to_write(call, 1):
            yield call
        if not isinstance(call.func, ast.Attribute):
            continue
        owner, method = ast.unparse(call.func.value), call.func.attr
        if (
            (owner == "os" and method in WRITING_OS and not opens_to_read(file, call))
            or (owner in WRITING_MODULES and method not in READING_SHUTIL)
            or (method in WRITING_METHODS and owner != "os")
            or (method == "open" and owner != "os" and opens_to_write(call, 0))
            # A path's replace takes one argument, a string's takes two.
            or (method == "replace" and owner != "os" and len(call.args) == 1 and not call.keywords)
        ):
            yield call


def opens_to_read(file: File, call: ast.Call) -> bool:
    """Whether os.open is given flags, here or as a constant of the file, that only read."""
    said = ast.unparse(call)
    for node in file.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and re.search(rf"\b{target.id}\b", said):
                said += ast.unparse(node.value)
    flags = re.findall(r"\bO_[A-Z]+", said)
    return "O_RDONLY" in flags and not {"O_CREAT", "O_TRUNC", "O_APPEND"} & {*flags}


def opens_to_write(call: ast.Call, position: int) -> bool:
    """Whether a call of open has a mode that is not known to read."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    given += call.args[position : position + 1]
    texts = [g.value for g in given if isinstance(g, ast.Constant) and isinstance(g.value, str)]
    return any(set(text) & set("wax+") for text in texts)


def swallowing(file: File) -> Iterator[str]:
    if not file.product:
        return
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = "" if node.type is None else ast.unparse(node.type)
        again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
        if caught == "" or (caught == "BaseException" and not again):
            yield f"line {node.lineno}: catches everything"
        elif caught == "Exception" and file.name != "src/tieout/output.py":
            yield f"line {node.lineno}: only the guard in output.py may catch Exception"


def floats(file: File) -> Iterator[str]:
    if file.product and file.name.startswith(MONEY):
        for call in file.calls():
            if ast.unparse(call.func) in ("float", "math.fsum", "statistics.mean"):
                yield f"line {call.lineno}: money is DECIMAL"


def excepted(file: File, found: list[str], exceptions: dict[str, str], rule: str) -> Iterator[str]:
    if file.name not in exceptions:
        yield from (f"{what}: {rule}" for what in found)
    elif not found:
        yield f"needs no exception any more ({exceptions[file.name]})"


RULES: tuple[Rule, ...] = (
    sizes,
    first_line,
    names,
    words,
    labels,
    imports,
    time_and_chance,
    file_writes,
    swallowing,
    floats,
)


@pytest.fixture(scope="module")
def files() -> list[File]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone: which files are tracked is not known")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [
        File(path.relative_to(ROOT).as_posix(), path.read_bytes())
        for path in paths
        if path.is_file() and not path.is_symlink()
    ]


@pytest.mark.parametrize("rule", RULES, ids=[rule.__name__ for rule in RULES])
def test_rule(rule: Rule, files: list[File]) -> None:
    found = [f"{file.name}: {finding}" for file in files for finding in rule(file)]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_what_must_be_there(files: list[File]) -> None:
    present = {file.name for file in files if file.payload.strip()}
    assert set(REQUIRED) - present == set()
    assert {*TIME_AND_CHANCE, *WRITERS} - present == set()


BROKEN: list[tuple[Rule, str, str]] = [
    (sizes, "ledger/a.py", "\n" * 401),
    (sizes, "tests/a.py", "def f():\n" + " pass\n" * 50),
    (sizes, "src/a.py", "#" + "x" * 100),
    (sizes, "fixtures/a.bin", "x" * 300_001),
    (first_line, "tests/a.py", "x = 1"),
    (names, "planner/utils.py", ""),
    (words, "README.md", "TO" + "DO later"),
    (words, "Makefile", "pip install -i https://" + "pypi" + ".org/simple"),
    (words, "docs/a.md", "see /ro" + "ot/secret"),
    (words, "requirements.txt", "a @ file"),
    (labels, "planner/a.py", "LABEL = 'Verified'"),
    (imports, "ledger/a.py", "def f():\n    import duckdb.typing"),
    (imports, "planner/loop.py", "from anthropic import Anthropic"),
    (time_and_chance, "ledger/a.py", "from time import sleep"),
    (time_and_chance, "ledger/a.py", "x = dt.datetime.now()"),
    (time_and_chance, "executor/clock.py", "x = 1"),
    (file_writes, "planner/a.py", "open('x', 'w')"),
    (file_writes, "planner/a.py", "path.open(mode='ab')"),
    (file_writes, "planner/a.py", "path.replace(other)"),
    (file_writes, "planner/a.py", "os.rename('a', 'b')"),
    (file_writes, "planner/a.py", "os.open(path, os.O_RDONLY | os.O_CREAT)"),
    (file_writes, "planner/a.py", "os.open(path, os.O_RDWR)"),
    (file_writes, "planner/a.py", "os.open(path, FLAGS)"),
    (file_writes, "planner/a.py", "FLAGS = os.O_WRONLY\nos.open(path, FLAGS)"),
    (file_writes, "planner/a.py", "shutil.rmtree('a')"),
    (file_writes, "artifacts/durable.py", "x = 1"),
    (swallowing, "planner/a.py", "try:\n    f()\nexcept:\n    raise"),
    (swallowing, "planner/a.py", "try:\n    f()\nexcept BaseException:\n    pass"),
    (swallowing, "planner/a.py", "try:\n    f()\nexcept Exception:\n    raise"),
    (floats, "executor/ingest/a.py", "float('1.10')"),
]


@pytest.mark.parametrize(("rule", "name", "text"), BROKEN)
def test_a_rule_can_fail(rule: Rule, name: str, text: str) -> None:
    assert list(rule(File(name, text.encode()))) != []


FINE: list[tuple[Rule, str, str]] = [
    (sizes, "tests/a.py", "\n" * 399 + "#" + "x" * 200),
    (words, "docs/a.md", "a/" + "root/b, https://example.com/" + "work/x"),
    (imports, "tests/a.py", "import duckdb"),
    (imports, "executor/sql/a.py", "import duckdb"),
    (file_writes, "planner/a.py", "open('x')\npath.open('rb')\ntext.replace('a', 'b')"),
    (file_writes, "planner/a.py", "os.open(path, os.O_RDONLY | os.O_CLOEXEC)"),
    (file_writes, "planner/a.py", "FLAGS = os.O_RDONLY\nos.open(path, FLAGS)"),
    (file_writes, "planner/a.py", "moment.replace(tzinfo=None)\nshutil.disk_usage('.')"),
    (swallowing, "planner/a.py", "try:\n    f()\nexcept BaseException:\n    g()\n    raise"),
]


@pytest.mark.parametrize(("rule", "name", "text"), FINE)
def test_a_rule_lets_pass(rule: Rule, name: str, text: str) -> None:
    assert list(rule(File(name, text.encode()))) == []
