"""What became of a case: passed, failed or waiting, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The three ends of a case."""

    PASSED = "passed"
    FAILED = "failed"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One case. reason: "" or what differs, is missing or should be known."""

    state: State
    case: str
    reason: str = ""

    @property
    def line(self) -> str:
        """One line for a person."""
        reason = " ".join(self.reason.split())
        return f"{self.state:<7} {self.case}" + (f"  ({reason})" if reason else "")


def passed(case: str, reason: str = "") -> Verdict:
    """The product's answer is the expected one."""
    return Verdict(State.PASSED, case, reason)


def failed(case: str, reason: str) -> Verdict:
    """The product could run it and its answer is another one."""
    return Verdict(State.FAILED, case, reason)


def waiting(case: str, reason: str) -> Verdict:
    """The product cannot run it yet, or nobody wrote a plan for it."""
    return Verdict(State.WAITING, case, reason)
