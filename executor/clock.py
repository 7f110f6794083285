"""The only source of time and ids; both stand in ledger rows and in no other hashed byte.

Source: DESIGN §8. Replay and tests pass a `SteppingClock`; nothing else asks the machine.
"""

from __future__ import annotations

import datetime as dt
import os
from typing import Protocol

ID_BYTES = 5


class Clock(Protocol):
    """Gives the time and new ids."""

    def now(self) -> str:
        """The time as RFC 3339 in UTC with six fraction digits and Z."""
        ...

    def new_id(self) -> str:
        """An id that sorts by time and was not given before."""
        ...


def stamp(moment: dt.datetime) -> str:
    """A moment in UTC as the text that a ledger row holds."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class SystemClock:
    """The machine's clock and its random numbers."""

    def now(self) -> str:
        """The machine's time."""
        return stamp(dt.datetime.now(dt.UTC))

    def new_id(self) -> str:
        """The second and ten random hexadecimal digits."""
        second = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
        return f"{second}-{os.urandom(ID_BYTES).hex()}"


class SteppingClock:
    """A clock that is asked and not looked at: each call is one microsecond later."""

    def __init__(self, start: dt.datetime) -> None:
        self._moment = start.astimezone(dt.UTC)
        self._ids = 0

    def now(self) -> str:
        """The next moment."""
        self._moment += dt.timedelta(microseconds=1)
        return stamp(self._moment)

    def new_id(self) -> str:
        """The next id, counted."""
        self._ids += 1
        return f"{self._moment.strftime('%Y%m%d-%H%M%S')}-{self._ids:010x}"
