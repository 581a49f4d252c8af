"""From the stamps of a log (no year, no time zone) to the nanoseconds of the record."""

from __future__ import annotations

import calendar
import time

_QUARTER_S = 900
"""Time zones differ by multiples of a quarter of an hour."""
_DAY_NS = 86_400_000_000_000


class TraceClock:
    """The clock of one process. Where a record tells the true time, the zone is known from it."""

    def __init__(self, modified_ns: int) -> None:
        self._modified_ns = modified_ns
        self._year = time.gmtime(modified_ns // 10**9).tm_year
        self._offset_s = -time.timezone
        self._known = False
        self._last = (b"", 0)

    def read(self, stamp: bytes, fraction: bytes) -> int:
        """`MMDD HH:MM:SS` and the digits after the point."""
        if stamp != self._last[0]:
            self._last = (stamp, self._seconds(stamp) * 10**9)
        return self._last[1] + int(fraction[:9].ljust(9, b"0"))

    def settle(self, stamp: bytes, true_us: float) -> None:
        """The record of this stamp says that it was written at `true_us`."""
        if self._known or not 0 < true_us < 1e16:
            return
        self._known = True
        self._year = time.gmtime(true_us / 1e6).tm_year
        apart = self._seconds(stamp, 0) - true_us / 1e6
        self._offset_s = round(apart / _QUARTER_S) * _QUARTER_S
        self._last = (b"", 0)

    def _seconds(self, stamp: bytes, offset: int | None = None) -> int:
        day, _, clock = stamp.partition(b" ")
        month, date = int(day[:2]), int(day[2:])
        hour, minute, second = (int(part) for part in clock.split(b":"))
        parts = (self._year, min(max(month, 1), 12), max(date, 1), hour, minute, second)
        seconds = calendar.timegm(parts) - (self._offset_s if offset is None else offset)
        # Written in December, read in January.
        if not self._known and seconds * 10**9 > self._modified_ns + 2 * _DAY_NS:
            seconds = calendar.timegm((self._year - 1, *parts[1:])) - self._offset_s
        return max(seconds, 0)
