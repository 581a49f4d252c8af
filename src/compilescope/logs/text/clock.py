"""Times of log lines. Torch's carry no year, other writers' no time at all.

Invariant: the times given for one process never go back, so that events keep the order of the log
whatever clocks its writers had.
"""

from __future__ import annotations

import calendar
import time

_DAY_NS = 86_400 * 10**9
_YEAR_BACK_DAYS = 300
"""A log without years that jumps back so far has passed New Year. Chosen: less than a year, and far
more than lines of two processes are out of order."""


class LogClock:
    """The times of one log."""

    def __init__(self, modified_ns: int) -> None:
        self._modified_ns = modified_ns
        self._year: int | None = None
        self._last_day = 0
        self._days: dict[tuple[int, bytes], int] = {}
        self._last: tuple[tuple[bytes, bytes], int | None] = ((b"", b""), None)

    def torch_ns(self, date: bytes, clock: bytes) -> int | None:
        """`1115` and `00:19:43.591000`, as if in UTC: no log says its time zone."""
        if self._last[0] != (date, clock):
            self._last = ((date, clock), self._torch_ns(date, clock))
        return self._last[1]

    def _torch_ns(self, date: bytes, clock: bytes) -> int | None:
        try:
            month, day = int(date[:2]), int(date[2:])
            hour, minute, second = int(clock[:2]), int(clock[3:5]), int(clock[6:8])
            micro = int(clock[9:15])
        except ValueError:
            return None
        midnight = self._midnight(month, day, date)
        if midnight is None or hour > 23 or minute > 59 or second > 60:
            return None
        return midnight + ((hour * 60 + minute) * 60 + second) * 10**9 + micro * 1000

    def _midnight(self, month: int, day: int, date: bytes) -> int | None:
        if self._year is None:
            self._year = self._first_year(month, day)
        found = self._days.get((self._year, date))
        if found is None:
            found = day_ns(self._year, month, day)
            if found is None:
                return None
            if found < self._last_day - _YEAR_BACK_DAYS * _DAY_NS:
                self._year += 1  # The log goes on after New Year.
                found = day_ns(self._year, month, day)
                if found is None:
                    return None
            self._days[self._year, date] = found
            self._last_day = max(self._last_day, found)
        return found

    def _first_year(self, month: int, day: int) -> int:
        """The last year in which that day was not after the log was last written."""
        year = time.gmtime(self._modified_ns // 10**9).tm_year
        first = day_ns(year, month, day)
        if first is not None and first > self._modified_ns + _DAY_NS:
            return year - 1
        return year


def day_ns(year: int, month: int, day: int) -> int | None:
    if not (1 <= month <= 12 and 1 <= day <= 31 and 1970 <= year <= 2200):
        return None
    return calendar.timegm((year, month, day, 0, 0, 0)) * 10**9
