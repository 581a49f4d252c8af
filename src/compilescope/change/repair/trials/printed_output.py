"""What two runs printed: the same, the same up to rounding, or less and in another order.

Numbers may differ by the last digits that were printed, or by about as much as the compiled
original differs from the eager one. Times, speeds and made-up names do not count where they differ
between runs of the original; everything else is compared as it is.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from compilescope.change.fixes.patch import Allowance
from compilescope.change.repair.trials.varying_text import without_varying

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|nan|inf)"
    r"(?![\d.])"
)
_GRAD_FN = re.compile(r"grad_fn=<\w+>")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
_WORD = re.compile(r"\w+|[^\w\s]")
_RELATIVE = 1e-4
"""Chosen: nearly a thousand units in the last place of float32 (1.2e-7), for what a program prints
has gone through many roundings. torch itself prints four decimals."""
_GROWTH = 4.0
"""Times the spread of the original's own outputs. Chosen, as `_BEYOND` in diff/rounds.py: the
few runs that are at hand seldom show the whole spread."""


class PrintedOutput(NamedTuple):
    """How what was printed compares."""

    verdict: Literal["pass", "fail"]
    words: str


def compare_output(
    before: bytes,
    after: bytes,
    allows: frozenset[Allowance] = frozenset(),
    others: Sequence[bytes] = (),
) -> PrintedOutput:
    """`others` are further outputs of the original: where those differ in a number, it is free to
    differ by as much; where in a time or a name, it does not count."""
    if before == after:
        return PrintedOutput("pass", "the same")
    told = _compare(_lines(before), _lines(after), allows)
    if told.verdict == "pass" or not others:
        return told
    old, *known, new = without_varying(
        [_lines(before), *map(_lines, others)], others=[_lines(after)]
    )
    return _compare(old, new, allows, known)


def compare_steadiness(first: bytes, again: bytes) -> PrintedOutput:
    """Do two runs of one version print the same, but for times and the like?"""
    old, new = without_varying([_lines(first), _lines(again)])
    return _compare(old, new)


def _compare(
    old: list[str],
    new: list[str],
    allows: frozenset[Allowance] = frozenset(),
    others: Sequence[list[str]] = (),
) -> PrintedOutput:
    spreads = _spreads(old, others)
    if len(old) == len(new) and all(
        _alike(a, b, spread) for a, b, spread in zip(old, new, spreads, strict=True)
    ):
        return PrintedOutput("pass", "the same except for the last digits of numbers")
    if "drops-output" in allows and "moves-output" in allows:
        if not Counter(_words(new)) - Counter(_words(old)):
            return PrintedOutput("pass", "less output, or in another order, as stated")
    elif "drops-output" in allows:
        if _is_part(new, old) or _is_part(list(_words(new)), list(_words(old))):
            return PrintedOutput("pass", "less output, as stated")
    elif "moves-output" in allows and Counter(old) == Counter(new):
        return PrintedOutput("pass", "in another order, as stated")
    return PrintedOutput("fail", _difference(old, new))


def differs_in_numbers(before: bytes, after: bytes) -> bool:
    """Is all the same but for numbers?"""
    texts = [_NUMBER.sub("#", "\n".join(_lines(output))).split() for output in (before, after)]
    return texts[0] == texts[1]


_NEAR = 0.05
"""Relative. Chosen: rounding moved the losses of small training loops by a few percent."""


def numbers_are_near(before: bytes, after: bytes) -> bool:
    """Is all the same but for numbers, and those nearly?"""
    if not differs_in_numbers(before, after):
        return False
    found = [_NUMBER.findall("\n".join(_lines(output))) for output in (before, after)]
    pairs = [(float(one), float(other)) for one, other in zip(*found, strict=True)]
    return all(
        one == other or abs(one - other) <= _NEAR * max(abs(one), abs(other))
        for one, other in pairs
    )


def _lines(output: bytes) -> list[str]:
    """Without addresses, and without the name of the last operation that autograd saw."""
    text = _GRAD_FN.sub("grad_fn=<...>", output.decode(errors="replace"))
    return _ADDRESS.sub("0x...", text).splitlines()


def _words(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield from _WORD.findall(line)


def _is_part(some: Sequence[str], whole: Sequence[str]) -> bool:
    """In the same order, with nothing added."""
    left = iter(whole)
    return all(any(_alike(have, want, ()) for have in left) for want in some)


def _spreads(lines: list[str], others: Sequence[list[str]]) -> list[tuple[float, ...]]:
    """By line: how far each of its numbers moves from run to run."""
    found: list[tuple[float, ...]] = []
    for number, line in enumerate(lines):
        mine = _numbers(line)
        apart = [0.0] * len(mine)
        for other in others:
            theirs = _numbers(other[number]) if number < len(other) else []
            if len(other) == len(lines) and len(theirs) == len(mine):
                gaps = [_gap(a, b) for a, b in zip(mine, theirs, strict=True)]
                apart = [max(pair) for pair in zip(apart, gaps, strict=True)]
        found.append(tuple(apart))
    return found


def _alike(old: str, new: str, spread: Sequence[float]) -> bool:
    if old == new:
        return True
    # Columns of numbers shift with their signs.
    if _NUMBER.sub("#", old).split() != _NUMBER.sub("#", new).split():
        return False
    mine, theirs = _numbers(old), _numbers(new)
    allowed = list(spread) + [0.0] * (len(mine) - len(spread))
    return len(mine) == len(theirs) and all(
        _near(a, b, more) for a, b, more in zip(mine, theirs, allowed, strict=True)
    )


def _near(one: str, other: str, spread: float) -> bool:
    a, b = float(one), float(other)
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b or (math.isnan(a) and math.isnan(b))
    last = 1.5 * max(_last_place(one), _last_place(other))
    return abs(a - b) <= max(last, _RELATIVE * abs(a), _GROWTH * spread)


def _gap(one: str, other: str) -> float:
    gap = abs(float(one) - float(other))
    return gap if math.isfinite(gap) else 0.0


def _last_place(text: str) -> float:
    """What one more in the last printed digit is worth."""
    digits, _, exponent = text.lower().partition("e")
    places = len(digits.partition(".")[2])
    power = int(exponent) if exponent else 0
    return 10.0 ** min(max(power - places, -300), 300)


def _numbers(line: str) -> list[str]:
    return _NUMBER.findall(line)


def _difference(old: list[str], new: list[str]) -> str:
    for number, (a, b) in enumerate(zip(old, new, strict=False), 1):
        if not _alike(a, b, ()):
            return f"line {number} of the output was {_short(a)} and is now {_short(b)}"
    if len(new) < len(old):
        return f"the output no longer has the line {_short(old[len(new)])}"
    return (
        f"the output has an extra line, {_short(new[len(old)])}"
        if new[len(old) :]
        else "whitespace"
    )


def _short(line: str) -> str:
    text = line.strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")
