"""FORMAT.md §12: the row behind a figure of a run, shown to someone who has an entry and a proof."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tieout
from tieout.artifacts.address import Address
from tieout.artifacts.local import LocalStore
from tieout.artifacts.rows import RowTree
from tieout.artifacts.table_reader import TableReader

AFTER = """
import sys
loaded = {name.split(".")[0] for name in sys.modules}
assert not loaded & {"tieout", "pyarrow", "duckdb", "apsw", "pydantic"}, loaded
text = str(int.from_bytes(value, "little", signed=True)).rjust(3, "0")
print(json.dumps([position, list(cells), kind, text[:-2] + "." + text[-2:]]))
"""


@pytest.fixture(scope="module")
def example(repository: Path) -> str:
    text = (repository / "docs" / "FORMAT.md").read_text("utf-8")
    text = text[text.index("**Without the table.**") :]
    start = text.index("    import json\n")
    return textwrap.dedent(text[start : text.index("`docs/vectors/rows.json`")])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> dict[str, object]:
    """A figure of a run, the entry of its step, and the proof of its row."""
    folder = tmp_path_factory.mktemp("told")
    for name in ("bank.csv", "gl.csv", "tieout.toml"):
        shutil.copy(repository / "fixtures" / "close" / name, folder)
    plan = (repository / "fixtures" / "close" / "plans" / "bank-1010.json").read_bytes()
    with tieout.init_workspace(folder) as opened:
        result = opened.ask("Does it tie out?", sources=["bank", "gl"], plan=plan)
        assert result.complete
    with sqlite3.connect(folder / ".tieout" / "ledger.sqlite") as connection:
        listed = connection.execute("SELECT entry FROM entry ORDER BY idx").fetchall()
    connection.close()
    store = LocalStore(folder / ".tieout" / "store")
    outputs = {}
    for (entry,) in listed:
        document = json.loads(entry)
        output = document["deterministic_output"]
        if output is not None:
            outputs[output["address"]] = entry
        for part in (*document["attachments"], output or {}):
            if part.get("media_type") == "application/vnd.tieout.report+json":
                report = json.loads(store.get(Address.parse(part["address"])))
    figure = next(each for each in report["figures"] if each["name"] == "difference")
    reader = TableReader(store.get(Address.parse(figure["address"])))
    (position,) = [p for p in range(reader.rows) if reader.row_key(p) == figure["row"]]
    return {
        "figure": figure,
        "entry": outputs[figure["address"]],
        "proof": RowTree(reader).prove(position),
        "position": position,
        "others": [entry for address, entry in outputs.items() if address != figure["address"]],
    }


def run(example: str, folder: Path, entry: bytes, proof: bytes) -> subprocess.CompletedProcess[str]:
    """The example in an interpreter of its own, which has the two byte strings and no table."""
    (folder / "entry").write_bytes(entry)
    (folder / "proof").write_bytes(proof)
    given = "entry, proof = (open(name, 'rb').read() for name in ('entry', 'proof'))\n"
    return subprocess.run(
        [sys.executable, "-I", "-W", "error::SyntaxWarning", "-c", given + example + AFTER],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_row_behind_a_figure_is_shown_without_its_table(example, told, tmp_path) -> None:
    done = run(example, tmp_path, told["entry"], told["proof"])
    assert done.returncode == 0, done.stderr
    position, columns, kind, value = json.loads(done.stdout)
    assert (position, value) == (told["position"], told["figure"]["value"])
    assert columns == ["bank", "book", "difference"]
    assert f'("{kind}", 16 bytes)' in example
    assert f"# {value.replace('.', '')}, in hundredths" in example
    assert len(told["proof"]) < 1_000


def test_the_example_refuses_what_does_not_hold(example, told, tmp_path) -> None:
    proof = told["proof"]
    rooted = [entry for entry in told["others"] if b'"row_root"' in entry]
    assert len(rooted) >= 2
    tries = [(entry, proof) for entry in rooted]
    for place in (3, 30, len(proof) - 1):
        changed = bytearray(proof)
        changed[place] ^= 1
        tries.append((told["entry"], bytes(changed)))
    tries += [(told["entry"], proof + b"x"), (told["entry"], proof[:-1])]
    for entry, tried in tries:
        done = run(example, tmp_path, entry, tried)
        assert done.returncode == 1
        assert "Error" in done.stderr
