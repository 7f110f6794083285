"""What a recorded validation says of how a step ran: verdict, rewrites, ties; for every reader.

The report of a question and `tieout show` tell the same. Nothing of the engine is loaded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from tieout.artifacts.printable import one_line
from tieout.ledger.canon import Json

Validation: TypeAlias = Mapping[str, Any]
"""A `validation` document (docs/FORMAT.md §11), {} for a step that has none."""
_TIES: Final = {
    "none": "checked, no rows tie where an added order could choose",
    "decided": "rows tie, and an added order chose",
    "unchecked": "not known, the check of an added order reached a bound",
}


def how_it_ran(validation: Validation) -> dict[str, Json]:
    """The members of a step that say how it ran; of a step without SQL they are empty.

    standing, reasons and rewrites as in the verdict, with places in the text as asked; ties: what
    the check of an added order found, "" without one; tied: the columns that it concerns.
    """
    verdict = validation.get("verdict", {})
    return {
        "standing": verdict.get("standing"),
        "reasons": list(verdict.get("reasons", [])),
        "rewrites": list(verdict.get("rewrites", [])),
        "ties": validation.get("ties", ""),
        "tied": list(validation.get("tied", [])),
    }


def how_it_ran_lines(members: Mapping[str, Any]) -> list[str]:
    """Those members for a person, places as line:column of the text as asked.

    No line where the text ran as asked and nothing tied.
    """
    lines = [
        f"rewrite   {name} at {', '.join(places)}"
        for name, places in _by_name(members["rewrites"]).items()
    ]
    lines += [f"reason    {r['name']}{_at(r)}: {r['detail']}" for r in members["reasons"]]
    if members["rewrites"] or members["reasons"]:
        lines.insert(0, f"standing  {members['standing']}")
    tied = f": {', '.join(members['tied'])}" if members["tied"] else ""
    said = _TIES.get(members["ties"], "")
    if tied and members["ties"] != "decided":
        said += f"{'; ' if said else ''}rows of an earlier step tie"
    if said:
        lines.append(f"ties      {said}{tied}")
    return [one_line(line) for line in lines]


def _by_name(rewrites: list[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The places of the rewrites of each name, in their order, each once."""
    found: dict[str, dict[str, None]] = {}
    for rewrite in rewrites:
        place = f"{rewrite['line']}:{rewrite['column']}"
        found.setdefault(rewrite["name"], {})[place] = None
    return {name: list(places) for name, places in found.items()}


def _at(reason: Mapping[str, Any]) -> str:
    known = reason["line"] is not None
    return f" at {reason['line']}:{reason['column']}" if known else ""
