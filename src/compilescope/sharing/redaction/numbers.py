"""One number for another, everywhere the same, and in the same order.

0, 1 and 2 stay, since the rules look at them, and so do the sizes of tensors, which the graphs
show anyway. Whole numbers stay whole and fractions stay fractions. All numbers must have been seen
before the first is replaced: an order can only be kept by who knows the whole of it.
"""

from __future__ import annotations

import bisect
import re
from decimal import Decimal, InvalidOperation
from itertools import pairwise

_SUFFIX = re.compile(r"(?:[jJfF]|[uU]?[lL]{1,2})$")
_BASED = re.compile(r"0[xXbBoO]")
_LONGEST_BASED = 4_000
"""Digits: to write more of them as a decimal takes time by their square. Chosen."""


class Numbers:
    """First `redact` only notes what there is; after `settle` it replaces."""

    def __init__(self) -> None:
        self._fixed = {Decimal(0), Decimal(1), Decimal(2)}
        self._kept: set[int] = set()
        self._seen: set[Decimal] = set()
        self._new: dict[Decimal, Decimal] | None = None
        self._told: dict[str, str] = {}
        self._largest = Decimal(2)
        """That stands for another."""

    @property
    def many(self) -> int:
        """How many were seen."""
        return len(self._seen)

    def keep(self, value: int) -> None:
        """A size: it stays as it is, wherever it stands."""
        if value not in self._kept:
            self._kept.add(value)
            self._fixed.add(Decimal(abs(value)))

    def redact(self, text: str) -> str:
        """Another number for a literal. It has no sign: that stands before it."""
        if text not in self._told:
            self._told[text] = self._redact(text)
        return self._told[text]

    def _redact(self, text: str) -> str:
        suffix = ""
        if not text.isdecimal() and not _BASED.match(text):
            suffix = "".join(_SUFFIX.findall(text))
        value = _value(text[: len(text) - len(suffix)])
        if value is None:
            return "9"
        if self._new is None:
            self._seen.add(value)
        if self._new is None or value in self._fixed:
            return text
        new = self._new.get(value)
        if new is None:
            self._largest += 1
            new = self._new[value] = self._largest
        if text.isdecimal():
            return f"{new:f}"
        real = not _BASED.match(text) and any(char in text for char in ".eE")
        whole = real and new == new.to_integral_value()
        return f"{new:f}{'.0' if whole else ''}{suffix}"

    def settle(self) -> None:
        """From here on numbers are replaced."""
        self._new = {}
        self._told.clear()
        whole = sorted({value for value in self._seen if _whole(value)} - self._fixed)
        for low, high in _gaps(self._fixed):
            self._place_whole(low, high, _between(low, whole, high))
        points = {*self._fixed, *whole}
        fractions = sorted(self._seen - points)
        for low, high in _gaps(points):
            self._place_fractions(low, _between(low, fractions, high))
        self._largest = max(self._new.values(), default=self._largest)

    def _place_whole(self, low: Decimal, high: Decimal | None, values: list[Decimal]) -> None:
        """Each after the one before, and none in its own place if there is room for another."""
        assert self._new is not None
        self._new[low] = last = low
        for number, value in enumerate(values, 1):
            last += 1
            room = high is None or len(values) - number < high - 1 - last
            if last == value and room:
                last += 1
            self._new[value] = last

    def _place_fractions(self, low: Decimal, values: list[Decimal]) -> None:
        assert self._new is not None
        digits = len(str(len(values))) + 1
        base = self._new[low]
        for parts in (len(values) + 1, len(values) + 2):
            shares = [round(Decimal(number) / parts, digits) for number in range(1, parts)]
            places = [base + share for share in shares[: len(values)]]
            if not set(places) & set(values):
                break
        self._new.update(zip(values, places, strict=True))


def _gaps(points: set[Decimal]) -> list[tuple[Decimal, Decimal | None]]:
    ends: list[Decimal | None] = [*sorted(points), None]
    return [(low, high) for low, high in pairwise(ends) if low is not None]


def _between(low: Decimal, values: list[Decimal], high: Decimal | None) -> list[Decimal]:
    """Those of the values, which are in order, that lie between the two."""
    end = len(values) if high is None else bisect.bisect_left(values, high)
    return values[bisect.bisect_right(values, low) : end]


def _value(text: str) -> Decimal | None:
    plain = text.replace("_", "")
    if len(plain) > _LONGEST_BASED and _BASED.match(plain):
        return None
    try:
        return Decimal(int(plain, 0)) if _BASED.match(plain) else Decimal(plain)
    except (ValueError, InvalidOperation):
        return None


def _whole(value: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    return (isinstance(exponent, int) and exponent >= 0) or value == value.to_integral_value()
