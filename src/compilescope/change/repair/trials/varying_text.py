"""What in a program's lines tells of the run and not of its results: times, speeds, names made up.

Such a text is left out of a comparison where runs of one and the same version differ in it. Any
other number is compared, also where it differs from run to run: it may be a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from re import Match
from typing import NamedTuple

from compilescope.base.patterns import late

# All repetitions are bounded: no line takes long, whatever it holds.
_NUMBER = r"\d[\d,]{0,20}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?(?!\d)"
_UNIT = r"[A-Za-z_]\w{0,30}"
_SECONDS = r"(?:ns|us|µs|ms|s|msecs?|secs?|(?:milli|micro)?seconds?|minutes?|hours?)"
_PER_SECOND = rf"{_UNIT} ?/ ?(?:s|secs?|seconds?)\b|{_UNIT} per second|fps|FPS"
_PER_STEP = rf"{_SECONDS} ?/ ?[A-Za-z]{{1,30}}"
_LABEL = (
    rf"(?:{_PER_SECOND}|{_PER_STEP})|\w{{1,30}}_per_s(?:ec(?:ond)?)?|pid|PID"
    r"|(?:\w{1,30}_)?(?:time|elapsed|took|duration|eta|ETA|latency|speed|throughput)"
    r"(?:_(?:s|ms|sec|seconds))?(?: \(\w{1,20}\))?"
)
# `loss 0.5 steps/s 140` has no 0.5 steps a second: a unit before a number is the name of that one.
_NO_LABEL = r"""(?![\w/])(?!["')\]]{0,3}\s{0,3}[=:]?\s{0,3}\d)"""
_SHAPE = late(
    # A date, a clock, both, or seconds since 1970 (from 2017 to 2033).
    r"(?P<moment>\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?"
    r"|\b\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d+)?|\b\d{8}[-_T]\d{6}\b|\b1[5-9]\d{8}(?:\.\d+)?\b)"
    rf"|(?P<label>\b(?:{_LABEL})\b[\"')\]]{{0,3}}\s{{0,3}}[=:]?\s{{0,3}})(?P<labelled>{_NUMBER})"
    rf"|(?<![\w.])(?P<amount>{_NUMBER} ?[kKMG]?(?:{_PER_SECOND}|{_PER_STEP}|{_SECONDS}){_NO_LABEL})"
    # Names with letters and digits, as temporary files and runs have them; whole paths of them.
    r"|(?P<name>(?<![\w.+-])(?:/[\w.-]{1,255}){2,20}"
    r"|(?<![\w.+-])(?!\d{1,20}[eE]\d{1,3}\b)(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])"
    r"\w[\w-]{5,80}\w)"
)
_DIGITS = late(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_DIGIT = late(r"\d")


class _Place(NamedTuple):
    line: str
    """Without its numbers and texts of these kinds: lines of one form are one."""
    number: int
    """Which of these texts in it."""
    kind: str | None


def without_varying(
    outputs: Sequence[Sequence[str]], others: Sequence[Sequence[str]] = ()
) -> list[list[str]]:
    """The lines of all, where what varies among `outputs`, runs of one version, is `<...>`."""
    seen = [_texts(lines) for lines in outputs]
    varying = {
        place
        for place in {place for texts in seen for place in texts}
        if any(_differ(place, seen[0].get(place, []), texts.get(place, [])) for texts in seen)
    }

    def mark(place: _Place, text: str) -> str:
        return "<...>" if place in varying else text

    return [[_replaced(line, mark) for line in lines] for lines in (*outputs, *others)]


def _differ(place: _Place, some: list[str], more: list[str]) -> bool:
    """Of names only the letters tell: `score_12` may hold a result."""
    if place.kind == "name":
        some, more = ([_DIGIT.sub("", text) for text in texts] for texts in (some, more))
    return any(a != b for a, b in zip(some, more, strict=False))


def _texts(lines: Iterable[str]) -> dict[_Place, list[str]]:
    found: dict[_Place, list[str]] = {}

    def note(place: _Place, text: str) -> str:
        found.setdefault(place, []).append(text)
        return text

    for line in lines:
        _replaced(line, note)
    return found


def _replaced(line: str, change: Callable[[_Place, str], str]) -> str:
    """The line, with what is to stand for each such text."""
    form = " ".join(_DIGITS.sub("#", _SHAPE.sub(_marked, line)).split())
    number = 0

    def replace(match: Match[str]) -> str:
        nonlocal number
        number += 1
        label = match["label"] or ""
        return label + change(_Place(form, number, match.lastgroup), match[0][len(label) :])

    return _SHAPE.sub(replace, line)


def _marked(match: Match[str]) -> str:
    return f"{match['label'] or ''}<{match.lastgroup}>"
