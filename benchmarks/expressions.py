"""Looks for regular expressions of the package whose time grows faster than what they read.

    python benchmarks/expressions.py [--size 800] [--only logs/ model/] [--part 1/4] [--verbose]

Every module is imported with `re.compile` and `patterns.late` watched, and calls like
`re.sub("...", ...)` are found in the source. Each expression is read by Python's own parser; from
its parts are made strings that almost match: what stands before a repetition, then the repetition's
own text many times, then something that fits nowhere. A string that takes long is timed again at 4
times its size: linear is 4 times the time, and more than 8 is reported. An expression that is only
matched at one place (`match`, `fullmatch`) is tried that way, all others as a search. The exit
status is 1 where one was found.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import itertools
import pkgutil
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import compilescope
from compilescope.base import patterns

try:
    from re import _constants as constants  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as constants
    import sre_parse as parser

PACKAGE = Path(compilescope.__file__).parent
NOT_IMPORTED = (
    "lessons",
    "programs",
    "examples",
    "boot",
    "boot_early",
    "embedded",
    "__main__",
    "warm",
)
INLINE = {"sub", "subn", "search", "match", "fullmatch", "findall", "finditer", "split"}
ANCHORED = {"match", "fullmatch"}
SLOW_S = 0.0003
"""For 800 letters. Chosen: several times what a linear expression takes, a fifth of a quadratic."""
SURE_S = 0.1
MOST_S = 1.0
MANY = 32
"""A repetition up to this often is no repetition here."""
COMMON = " a0_.\n/(,'\"|-#:=[x"
MOST_LETTERS = 20
"""Of an expression, its own first: all pairs of them are tried."""
ENDS = ("", "\x00", "\n!", "x")


@dataclass
class Expression:
    """One of the package's expressions, and how it is used."""

    pattern: str | bytes
    flags: int
    place: str
    methods: set[str] = field(default_factory=set)

    @property
    def is_anchored(self) -> bool:
        """Where no use is found, it is part of another expression, or handed to a `match`."""
        return self.methods <= ANCHORED


@dataclass
class Found:
    expression: Expression
    text: str
    """How the string was made."""
    growth: float
    seconds: float


def expressions() -> tuple[list[Expression], list[str]]:
    """All of the package, and the modules that could not be imported."""
    compiled, failed = _compiled()
    found = {
        (e.pattern, e.flags, e.is_anchored, e.methods == {"fullmatch"}): e
        for e in (*compiled, *_inline())
    }
    return list(found.values()), failed


def _compiled() -> tuple[list[Expression], list[str]]:
    found: list[Expression] = []
    failed: list[str] = []
    original = re.compile

    def watched(pattern: Any, flags: int = 0) -> Any:
        caller = sys._getframe(1)
        file = Path(caller.f_code.co_filename)
        if PACKAGE in file.parents and not isinstance(pattern, re.Pattern):
            place = f"{file.relative_to(PACKAGE)}:{caller.f_lineno}"
            found.append(Expression(pattern, int(flags), place, _methods(file, caller.f_lineno)))
        return original(pattern, flags)

    deferred = patterns.late
    re.compile = watched
    patterns.late = watched
    try:
        for info in pkgutil.walk_packages([str(PACKAGE)], "compilescope."):
            if any(part in NOT_IMPORTED for part in info.name.split(".")):
                continue
            try:
                importlib.import_module(info.name)
            except Exception as error:
                failed.append(f"{info.name}: {type(error).__name__}: {error}")
    finally:
        re.compile = original
        patterns.late = deferred
    return found, failed


def _methods(file: Path, line: int) -> set[str]:
    """The methods that are called on what is assigned in this line."""
    text = file.read_text()
    names = [
        target.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign) and node.lineno <= line <= (node.end_lineno or 0)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    if len(names) != 1:
        return set()
    texts = [text]
    if not names[0].startswith("_"):
        texts = [path.read_text() for path in PACKAGE.rglob("*.py")]
    return {
        method for each in texts for method in re.findall(rf"\b{names[0]}\.([a-z]+)\b", each)
    } & INLINE


def _inline() -> Iterator[Expression]:
    """`re.sub("...", ...)`: only those whose expression stands there whole."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if any(part in NOT_IMPORTED for part in path.relative_to(PACKAGE).parts):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            called = node.func
            if not (isinstance(called.value, ast.Name) and called.value.id == "re"):
                continue
            if called.attr not in INLINE or not node.args:
                continue
            pattern = _constant(node.args[0])
            if pattern is not None:
                place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                yield Expression(pattern, _flags(node), place, {called.attr})


def _constant(node: ast.expr) -> str | bytes | None:
    """The text of an expression; what an f-string puts into it is taken for a word."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "word" for part in node.values
        )
    return None


def _flags(call: ast.Call) -> int:
    names = {n.attr for n in ast.walk(call) if isinstance(n, ast.Attribute) and n.attr.isupper()}
    return int(sum(getattr(re, name) for name in names if isinstance(getattr(re, name, None), int)))


class Parts:
    """What strings against an expression are made of."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        tree = parser.parse(pattern, flags)
        self.letters: dict[str, None] = {}
        self.starts: dict[str, None] = {"": None}
        self.pumps: dict[str, None] = {}
        whole = self._walk(tree, "")
        for cut in range(1, min(len(whole), 40) + 1):
            self.pumps[whole[:cut]] = None
        self.letters.update(dict.fromkeys(COMMON))
        self.pumps.update(self.letters)

    def _walk(self, tree: Any, before: str) -> str:
        """A string that fits `tree`; repetitions in it are noted with what stands before them."""
        made = ""
        for op, value in tree:
            made += self._one(op, value, before + made)
        return made

    def _one(self, op: Any, value: Any, before: str) -> str:
        if op is constants.LITERAL:
            self.letters[chr(value)] = None
            return chr(value)
        if op is constants.NOT_LITERAL:
            return "a" if value != ord("a") else "b"
        if op is constants.ANY:
            return "a"
        if op is constants.IN:
            return self._class(value)
        if op in (constants.MAX_REPEAT, constants.MIN_REPEAT) or op.name == "POSSESSIVE_REPEAT":
            return self._repeat(value, before)
        if op is constants.BRANCH:
            made = [self._walk(branch, before) for branch in value[1]]
            self.pumps.update(dict.fromkeys(each for each in made if each))
            return made[0]
        if op is constants.SUBPATTERN:
            return self._walk(value[-1], before)
        if op is constants.ASSERT:
            return self._walk(value[1], before) if value[0] > 0 else ""
        return ""

    def _repeat(self, value: tuple[int, Any, Any], before: str) -> str:
        least, most, body = value
        made = self._walk(body, before)
        if most > MANY:
            self.starts[before] = None
            for times in (1, 3):
                self.pumps[made * times] = None
            self.pumps[before + made] = None
        return made * max(least, 1)

    def _class(self, items: Any) -> str:
        chosen: list[str] = []
        negated: set[str] = set()
        excludes = False
        for op, value in items:
            if op is constants.NEGATE:
                excludes = True
            elif op is constants.LITERAL:
                chosen.append(chr(value))
            elif op is constants.RANGE:
                chosen.append(chr(value[0]))
            elif op is constants.CATEGORY:
                chosen.append({"DIGIT": "0", "WORD": "a", "SPACE": " "}.get(value.name[9:], "."))
        self.letters.update(dict.fromkeys(chosen))
        if excludes:
            negated = set(chosen)
            return next(letter for letter in "ab0 .\x01é" if letter not in negated)
        return chosen[0] if chosen else "a"


def strings(parts: Parts) -> Iterator[tuple[str, str, str]]:
    starts = sorted(parts.starts, key=len)[:8]
    pumps = [pump for pump in parts.pumps if pump]
    yield from itertools.product(starts, pumps, ENDS)
    letters = list(parts.letters)[:MOST_LETTERS]
    for one, other in itertools.product(letters, repeat=2):
        if one != other:
            yield "", one + other, "\x00"


class TooLong(Exception):
    pass


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong

    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def timed(use: Callable[[Any], object], text: str | bytes) -> float:
    began = time.thread_time()
    try:
        with limited(MOST_S):
            use(text)
    except TooLong:
        return MOST_S
    return time.thread_time() - began


def check(expression: Expression, size: int) -> Found | None:
    """The first string that takes it more than linear time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = re.compile(expression.pattern, expression.flags)
        parts = Parts(expression.pattern, expression.flags)
    if expression.is_anchored:
        use: Callable[[Any], Any] = compiled.match
        if expression.methods == {"fullmatch"}:
            use = compiled.fullmatch
    else:

        def use(text: Any) -> Any:
            return sum(1 for _ in compiled.finditer(text))

    for start, pump, end in strings(parts):

        def make(letters: int, start: str = start, pump: str = pump, end: str = end) -> str | bytes:
            text = start + pump * (letters // len(pump)) + end
            bytewise = isinstance(expression.pattern, bytes)
            return text.encode("latin-1", "replace") if bytewise else text

        first = timed(use, make(size))
        if first < SLOW_S:
            continue
        first = min(first, timed(use, make(size)))
        if first < SLOW_S:
            continue
        more = min(timed(use, make(4 * size)), timed(use, make(4 * size)))
        growth = more / first
        if growth > 8 and more < SURE_S:
            # Few milliseconds tell little on a busy machine.
            growth = timed(use, make(16 * size)) / more
        if growth > 8 or more >= MOST_S:
            return Found(expression, f"{start!r} + {pump!r} * n + {end!r}", growth, more)
    return None


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--size", type=int, default=800)
    options.add_argument("--only", nargs="*", default=[], help="Beginnings of file names.")
    options.add_argument("--part", default="1/1", help="2/4: the second quarter of them.")
    options.add_argument("--verbose", action="store_true")
    asked = options.parse_args()
    found, failed = expressions()
    for line in failed:
        print(f"not imported: {line}")
    bad = checked = 0
    part, parts = map(int, asked.part.split("/"))
    chosen = sorted(
        (one for one in found if not asked.only or one.place.startswith(tuple(asked.only))),
        key=lambda one: one.place,
    )
    for expression in chosen[part - 1 :: parts]:
        checked += 1
        worst = check(expression, asked.size)
        if worst is not None:
            bad += 1
            print(f"{expression.place} ({', '.join(sorted(expression.methods)) or 'unknown use'})")
            print(f"    {expression.pattern!r}"[:300])
            print(
                f"    {worst.text}: {worst.seconds:.3f} s at {4 * asked.size} letters, "
                f"{worst.growth:.1f} times the time of {asked.size}",
                flush=True,
            )
        elif asked.verbose:
            print(f"{expression.place}: linear", flush=True)
    print(f"{checked} expressions, {bad} grow faster than their text.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
