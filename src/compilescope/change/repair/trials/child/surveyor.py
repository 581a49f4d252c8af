"""Facts about the variables of some functions, while the program runs eagerly.

Bounded: some calls of each function, some values of each name; what a value is, never the value,
but for short constants.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec

from compilescope.change.repair.trials.child.kept_outcomes import claim
from compilescope.instrument.torchapi.regions import Regions
from compilescope.instrument.torchapi.values import NOTHING, stored_attribute, value_fact
from compilescope.record.values import RETURNED, ValueFact

_CALLS = 40
"""Of one function; later ones go by untraced. Chosen: tracing slows every line down, and a value
that only changes later is not seen."""
_FACTS = 6
"""Of one name at one line; further kinds of values are not told to the fixes. Chosen: it is looked
through for every variable at every line."""

_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})


class Surveyor:
    """Traces the functions around some lines."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._folder = Path(options["folder"])
        self._places: dict[str, list[int]] = {}
        self._asked: dict[str, str] = {}
        """By which name a file was asked for: `/home/me/../you/train.py`, as Python may call it."""
        for file, line in options["places"]:
            plain = os.path.normpath(file)
            self._asked[plain] = file
            self._places.setdefault(plain, []).append(line)
        self._regions = Regions(self._call_eagerly)
        self._wanted: dict[CodeType, bool] = {}
        self._calls: dict[CodeType, int] = {}
        self._seen: dict[str, dict[int, dict[str, list[ValueFact]]]] = {}
        self._shapes: dict[str, dict[int, list[dict[str, tuple[int, ...]]]]] = {}

    def begin(self, *, alone: bool = True) -> None:
        """Not `alone`: somebody else calls the regions eagerly."""
        if alone:
            self._regions.install()
        threading.settrace(self._trace)
        # torch was imported in the middle of the program: what runs already is traced too.
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if self._is_wanted(frame.f_code):
                frame.f_trace = self._local
            frame = frame.f_back
        sys.settrace(self._trace)
        atexit.register(self._write)

    def _call_eagerly(self, region: Any, args: Any, kwargs: Any) -> Any:
        with self._regions.calling("eager"):
            return region.eager(*args, **kwargs)

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if not self._is_wanted(code) and not self._is_comprehension_of_wanted(frame):
            return None
        count = self._calls[code] = self._calls.get(code, 0) + 1
        return self._local if count <= _CALLS else None

    def _is_comprehension_of_wanted(self, frame: FrameType) -> bool:
        """A function of its own before Python 3.12, and part of the one around it since."""
        around = frame.f_back
        inner = frame.f_code.co_name in _COMPREHENSIONS
        return inner and around is not None and self._is_wanted(around.f_code)

    def _is_wanted(self, code: CodeType) -> bool:
        found = self._wanted.get(code)
        if found is None:
            lines = self._places.get(os.path.normpath(code.co_filename))
            found = self._wanted[code] = bool(lines) and _covers(code, lines or [])
        return found

    def _local(self, frame: FrameType, event: str, arg: Any) -> Any:
        # The border: looking at the program's objects may run code of theirs.
        try:
            if event == "line":
                self._note(frame)
            elif event == "return" and arg is not None:
                self._add(self._here(frame), RETURNED, value_fact(arg))
        except Exception:
            return None
        return self._local

    def _name(self, frame: FrameType) -> str:
        return self._asked[os.path.normpath(frame.f_code.co_filename)]

    def _here(self, frame: FrameType) -> dict[str, list[ValueFact]]:
        in_file = self._seen.setdefault(self._name(frame), {})
        return in_file.setdefault(frame.f_lineno, {})

    @staticmethod
    def _add(here: dict[str, list[ValueFact]], name: str, fact: ValueFact) -> None:
        facts = here.setdefault(name, [])
        if len(facts) < _FACTS and fact not in facts:
            facts.append(fact)

    def _note(self, frame: FrameType) -> None:
        here = self._here(frame)
        shapes: dict[str, tuple[int, ...]] = {}
        for name, value in _names(frame):
            fact = value_fact(value)
            if fact.shape is not None:
                shapes[name] = fact.shape
            self._add(here, name, fact)
        in_file = self._shapes.setdefault(self._name(frame), {})
        visits = in_file.setdefault(frame.f_lineno, [])
        if shapes not in visits:
            visits.append(shapes)

    def facts(self) -> dict[str, Any]:
        """As `ValueFacts` reads them."""
        return {"seen": self._seen, "shapes": self._shapes}

    def _write(self) -> None:
        sys.settrace(None)
        threading.settrace(None)
        if self._seen and claim(self._folder):
            part = self._folder / "facts.json.part"
            part.write_bytes(msgspec.json.encode(self.facts()))
            os.replace(part, self._folder / "facts.json")


def _covers(code: CodeType, lines: list[int]) -> bool:
    """Does the function contain one of the lines? The innermost one does for its own."""
    own = [line for _, _, line in code.co_lines() if line is not None]
    if not own:
        return False
    if code.co_name == "<module>":
        return any(line in own for line in lines)
    return any(min(own) <= line <= max(own) for line in lines)


def _names(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Locals, attributes one step deep that the function names, and globals that it names."""
    named = frame.f_code.co_names
    for name, value in list(frame.f_locals.items()):
        if frame.f_code.co_name == "<module>" and name not in named:
            continue
        yield name, value
        for attribute in named:
            held = stored_attribute(value, attribute)
            if held is not NOTHING:
                yield f"{name}.{attribute}", held
    if frame.f_locals is not frame.f_globals:
        for name in named:
            if name in frame.f_globals and name not in frame.f_locals:
                yield name, frame.f_globals[name]
