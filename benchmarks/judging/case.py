"""One changed program, and what the judge said of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from judging.edits import Written
from judging.mutants import mutants
from judging.same import rewrites

ROOT = Path(__file__).resolve().parents[2]
REVIEWED = Path(__file__).with_name("reviewed.json")
Kind = Literal["mutant", "same"]
_SUBJECTS = (
    "tests/zoo/programs/*.py",
    "tests/fixes/programs/*.py",
    "src/compilescope/change/fixes/*/examples/*/good.py",
    "benchmarks/real_programs/own/*.py",
)


def every_subject() -> list[str]:
    """Programs, relative to the project."""
    found = [path for pattern in _SUBJECTS for path in sorted(ROOT.glob(pattern))]
    return [str(path.relative_to(ROOT)) for path in found]


class Case(NamedTuple):
    """A program with one change."""

    subject: str
    kind: Kind
    change: Written

    @property
    def key(self) -> str:
        """Of the whole text: it is another one, as soon as anything in the program is."""
        whole = "\0".join((self.subject, self.kind, self.change.text))
        return hashlib.sha256(whole.encode()).hexdigest()[:16]


def cases_of(subject: str, kind: Kind) -> list[Case]:
    text = (ROOT / subject).read_text(encoding="utf-8")
    make = mutants if kind == "mutant" else rewrites
    return [Case(subject, kind, each) for each in make(text)]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A case, and the answer."""

    key: str
    subject: str
    kind: str
    operator: str
    line: int
    function: str
    old: str
    new: str
    verdict: str
    """As `verify` has it: changed, verified, worse, unknown."""
    reason: str = ""
    ran: bool = True
    """Did the changed statement run?"""
    seconds: float = 0.0


class LeftOut(msgspec.Struct, frozen=True):
    """A program that nothing can be held against, and why."""

    subject: str
    left_out: str


class Finished(msgspec.Struct, frozen=True):
    """A program of which all was judged that was asked for."""

    finished: str
    asked: str


Answer = Judged | LeftOut | Finished


class Reviewed(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader of the two texts says of one that was let through."""

    key: str
    subject: str
    line: int
    change: str
    finding: Literal["equivalent", "survives"]
    """It does the same, whatever it is given; or it does not, and the judge does not see it."""
    why: str


@cache
def reviewed() -> dict[str, Reviewed]:
    rows = msgspec.json.decode(REVIEWED.read_bytes(), type=list[Reviewed])
    return {row.key: row for row in rows}


def stale_reviews() -> list[Reviewed]:
    """Of mutants that are made no more, since the program or the operator is another one."""
    rows = list(reviewed().values())
    made = {
        case.key
        for subject in {row.subject for row in rows}
        if (ROOT / subject).exists()
        for case in cases_of(subject, "mutant")
    }
    return [row for row in rows if row.key not in made]


class Kept(NamedTuple):
    """What was answered so far."""

    judged: list[Judged]
    left: list[LeftOut]
    finished: set[tuple[str, str]]
    """Program, and what was asked."""

    def add(self, answer: Answer) -> None:
        if isinstance(answer, Judged):
            self.judged.append(answer)
        elif isinstance(answer, LeftOut):
            self.left.append(answer)
        else:
            self.finished.add((answer.finished, answer.asked))


def read_kept(path: Path | None) -> Kept:
    """Lines of JSON; one that was cut off is no answer."""
    kept = Kept([], [], set())
    for line in path.read_bytes().splitlines() if path is not None and path.exists() else ():
        kinds: dict[bytes, type[Answer]] = {b'"left_out"': LeftOut, b'"finished"': Finished}
        kind = next((each for mark, each in kinds.items() if mark in line), Judged)
        with contextlib.suppress(msgspec.DecodeError):
            kept.add(msgspec.json.decode(line, type=kind))
    return kept


class Row(NamedTuple):
    """Of the table: one operator, or all."""

    operator: str
    made: int
    not_run: int
    caught: int
    unknown: int
    equivalent: int
    survived: int

    @property
    def rate(self) -> float | None:
        """Of those that do something else, as far as anybody knows."""
        different = self.caught + self.survived
        return self.caught / different if different else None


def rows_of(judged: Sequence[Judged]) -> list[Row]:
    operators = list(dict.fromkeys(sorted(each.operator for each in judged)))
    rows = [_row(name, [j for j in judged if j.operator == name]) for name in operators]
    return [*rows, _row("all", judged)]


def _row(name: str, judged: Sequence[Judged]) -> Row:
    groups = [group_of(each) for each in judged]
    return Row(name, len(groups), *(groups.count(group) for group in GROUPS))


GROUPS = ("not run", "caught", "unknown", "equivalent", "survived")


def group_of(judged: Judged) -> str:
    if judged.verdict == "changed":
        return "caught"
    if not judged.ran and judged.verdict == "unknown":
        return "not run"
    if judged.verdict == "unknown":
        return "unknown"
    row = reviewed().get(judged.key)
    return "equivalent" if row is not None and row.finding == "equivalent" else "survived"


def wrongly_rejected(judged: Iterable[Judged]) -> Iterator[Judged]:
    """What does the same, and was said to be changed."""
    for each in judged:
        row = reviewed().get(each.key)
        is_same = each.kind == "same" or (row is not None and row.finding == "equivalent")
        if is_same and each.verdict == "changed":
            yield each


def as_line(row: Answer) -> str:
    return json.dumps(msgspec.to_builtins(row)) + "\n"
