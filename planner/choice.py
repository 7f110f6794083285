"""Which model plans a question, and what the ledger is told of it.

The same settings build the same request bytes, in the run and in its replay.
"""

from __future__ import annotations

from collections.abc import Mapping

from tieout.ledger.canon import Json
from tieout.ledger.row import ExecutorInfo
from tieout.planner.claude import ClaudeModel
from tieout.planner.errors import PlannerError
from tieout.planner.model import Model
from tieout.planner.questions import Question
from tieout.planner.schema import turn_schema
from tieout.planner.written import WrittenModel


def written(question: Question) -> tuple[Model, ExecutorInfo]:
    """The plan file of a question as its model. Raises PlannerError plan.*."""
    if question.plan is None:
        raise AssertionError(f"{question.id} has no plan file")
    model = WrittenModel(question.plan, place=question.plan_name or question.id)
    return model, ExecutorInfo("written", "1")


def claude(settings: Mapping[str, Json]) -> tuple[Model, ExecutorInfo]:
    """Claude, or whatever speaks the Messages API at base_url, as the run's settings say.

    Raises PlannerError model.setting, model.base_url.
    """
    told = settings["model"]
    if not isinstance(told, dict):
        raise PlannerError(
            "model.setting",
            "the run's settings name no model",
            remedy="Run `tieout doctor`.",
        )
    name, base_url = str(told["name"]), str(told["base_url"])
    model = ClaudeModel(
        name,
        base_url=base_url or None,
        max_tokens=_number(told["max_tokens"]),
        timeout_s=float(_number(told["timeout_s"])),
        retries=_number(told["retries"]),
        schema=turn_schema(),
    )
    return model, ExecutorInfo("messages-api", "1", settings={"model": name, "base_url": base_url})


def _number(value: Json) -> int:
    if not isinstance(value, int):
        raise PlannerError(
            "model.setting", f"{value!r} is not a number", remedy="Correct the setting."
        )
    return value
