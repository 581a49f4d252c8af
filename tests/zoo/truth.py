"""Reads the truth about a zoo program out of the marker comments in its source.

A marker begins with `#:` and concerns the line it ends; a line may carry several:

    #: break "EXPR" GB_TYPE                          a graph break whose column is where EXPR starts
    #: eager ROOT                                    this function ran without any compiled code
    #: eager-rest ROOT                               only the part before ROOT was compiled
    #: recompile COUNT "GUARD" EXPECTED -> ACTUAL    compiled COUNT times more than once
    #: limit                                         the recompile limit was hit
    #: category CATEGORY                             the taxonomy's category of the line's breaks
    #: failure EXCTYPE "EXPR" GB_TYPE                compiling raised; EXPR and GB_TYPE may be -
    #: graphs N                                      graphs handed to the backend; once a program

`"EXPR"@2` names the second occurrence of EXPR in the line.

What only some torches do stands beside it, under the name of a capability
(docs/reference/versions.md):
`#: with tracing/random eager ROOT` holds where torch has it, in place of the line's `eager` for the
others, `#: without tracing/random eager ROOT` where it has not; `none` in place of a marker takes
away what the line says for the others.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from capabilities import expected

PROGRAMS = Path(__file__).parent / "programs"

_CONDITION = re.compile(r"(?P<sense>with|without) (?P<capability>\S+) (?P<marker>.+)")
_EXPR = r'"(?P<expr>[^"]+)"(?:@(?P<nth>[1-9]\d*))?'
_BREAK = re.compile(rf"{_EXPR} (?P<gb_type>\S.*)")
_RECOMPILE = re.compile(
    r'(?P<count>[1-9]\d*) "(?P<guard>[^"]+)" (?P<expected>.+?) -> (?P<actual>.+)'
)
_FAILURE = re.compile(rf"(?P<exc_type>\w+) (?:-|{_EXPR}) (?P<gb_type>\S.*)")


@dataclass(frozen=True)
class BreakTruth:
    line: int
    column: int
    gb_type: str


@dataclass(frozen=True)
class EagerTruth:
    line: int
    root: str
    rest: bool


@dataclass(frozen=True)
class RecompileTruth:
    line: int
    count: int
    guard: str
    expected: str
    actual: str


@dataclass(frozen=True)
class FailureTruth:
    line: int
    exc_type: str
    column: int | None
    gb_type: str | None


@dataclass(frozen=True)
class Truth:
    path: Path
    title: str
    graphs: int
    breaks: frozenset[BreakTruth]
    eager: frozenset[EagerTruth]
    recompiles: frozenset[RecompileTruth]
    limits: frozenset[int]
    failures: frozenset[FailureTruth]
    categories: frozenset[tuple[int, str]] = frozenset()
    """(line, category) of the breaks."""


def all_programs() -> list[Path]:
    return sorted(PROGRAMS.glob("*.py"))


def read_truth(path: Path, has: Callable[[str], bool] = expected) -> Truth:
    """What holds in a torch that has these capabilities, by default in this one.

    Raise ValueError, naming file and line, when a marker or the docstring is malformed.
    """
    source = path.read_text(encoding="utf-8")
    title = ast.get_docstring(ast.parse(source))
    if not title:
        raise ValueError(f"{path}:1: no docstring")
    graphs: list[int] = []
    breaks: set[BreakTruth] = set()
    eager: set[EagerTruth] = set()
    recompiles: set[RecompileTruth] = set()
    limits: set[int] = set()
    failures: set[FailureTruth] = set()
    categories: set[tuple[int, str]] = set()
    for line, code, marker in _markers(source, has):
        try:
            kind, _, rest = marker.partition(" ")
            match kind:
                case "graphs":
                    graphs.append(int(rest))
                case "break":
                    found = _match(_BREAK, rest)
                    breaks.add(BreakTruth(line, _column(found, code), found["gb_type"]))
                case "eager" | "eager-rest" if rest:
                    eager.add(EagerTruth(line, rest, kind == "eager-rest"))
                case "recompile":
                    found = _match(_RECOMPILE, rest)
                    values = found["guard"], found["expected"], found["actual"]
                    recompiles.add(RecompileTruth(line, int(found["count"]), *values))
                case "category" if rest:
                    categories.add((line, rest))
                case "limit" if not rest:
                    limits.add(line)
                case "failure":
                    found = _match(_FAILURE, rest)
                    column = _column(found, code) if found["expr"] else None
                    gb_type = None if found["gb_type"] == "-" else found["gb_type"]
                    failures.add(FailureTruth(line, found["exc_type"], column, gb_type))
                case _:
                    raise ValueError("unknown marker")
        except ValueError as error:
            raise ValueError(f"{path}:{line}: {error}: #: {marker}") from error
    if len(graphs) != 1:
        raise ValueError(f"{path}:1: {len(graphs)} 'graphs' markers instead of one")
    if any(
        len({r.count for r in recompiles if r.line == line}) > 1
        for line in {r.line for r in recompiles}
    ):
        raise ValueError(f"{path}:1: the recompile markers of a function disagree on the count")
    return Truth(
        path,
        title,
        graphs[0],
        frozenset(breaks),
        frozenset(eager),
        frozenset(recompiles),
        frozenset(limits),
        frozenset(failures),
        frozenset(categories),
    )


def _markers(source: str, has: Callable[[str], bool]) -> Iterator[tuple[int, str, str]]:
    """Line number, the line's code before the comment, and the marker's text after `#:`."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or "#:" not in token.string:
            continue
        line, start = token.start
        markers = [marker.strip() for marker in token.string.split("#:")[1:]]
        for marker in _of_torch(markers, has):
            yield line, token.line[:start], marker


def _of_torch(markers: list[str], has: Callable[[str], bool]) -> Iterator[str]:
    """Those of a line that hold in this torch."""
    special = [_CONDITION.fullmatch(marker) for marker in markers]
    here = [
        each["marker"]
        for each in special
        if each and has(each["capability"]) == (each["sense"] == "with")
    ]
    kinds = {marker.partition(" ")[0] for marker in here}
    for marker, each in zip(markers, special, strict=True):
        if each is None and "none" not in kinds and marker.partition(" ")[0] not in kinds:
            yield marker
    yield from (marker for marker in here if marker != "none")


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError("malformed marker")
    return found


def _column(found: re.Match[str], code: str) -> int:
    column = -1
    for _ in range(int(found["nth"] or 1)):
        column = code.find(found["expr"], column + 1)
        if column < 0:
            raise ValueError("the expression is not in the line")
    return column
