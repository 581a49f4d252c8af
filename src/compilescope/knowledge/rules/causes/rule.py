"""What a rule about graph breaks, about recompiles, or about whole programs is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import msgspec

from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import is_own
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.findings.remedy import Remedy
from compilescope.knowledge.source.examples import Example, example_folder, read_examples
from compilescope.knowledge.source.outline import CompileCall, Function, Outline
from compilescope.knowledge.source.spots import Sources, SourceSpot
from compilescope.record.event import Event
from compilescope.record.stack import CodeRef, Frame

_LONGEST = 90
"""Letters of a text of the user's in a sentence. Chosen: the sentence stays about a line."""
_RULES = Path(__file__).parent.parent


class BreakCase(msgspec.Struct, frozen=True, dict=True):
    """A graph break and the source around it: what a rule looks at."""

    finding: BreakFinding
    look: Callable[[], SourceSpot]
    """Finds the spot. It may have to parse a file, and many rules need no look at it."""

    @functools.cached_property
    def spot(self) -> SourceSpot:
        return self.look()

    @functools.cached_property
    def text(self) -> str:
        """The offending expression, on one line, cut where it grows too long to read."""
        text = " ".join(self.spot.text.split())
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

    @property
    def function(self) -> str:
        return self.finding.function

    def says(self, *parts: str) -> bool:
        """Does PyTorch's own type, context or explanation speak of any of these?"""
        told = self.finding
        return _says(told.gb_type, told.context, told.explanation, parts)


@functools.lru_cache(1 << 12)
def _says(gb_type: str, context: str, explanation: str, parts: tuple[str, ...]) -> bool:
    """Every rule asks, of every break, and of thousands torch says the same."""
    words = f"{gb_type}\n{context}\n{explanation}"
    return any(part in words for part in parts)


class BreakRule(msgspec.Struct, frozen=True, dict=True):
    """A pattern of graph breaks. The first rule that applies, by `order`, explains a site."""

    id: str
    category: str
    """A category of the registry's taxonomy."""
    order: int
    """Special patterns come before general ones."""
    applies: Callable[[BreakCase], bool]
    """By what torch says (`says`), by `in_torch` and by the spot, and by nothing else."""
    why: Callable[[BreakCase], str]
    remedies: Callable[[BreakCase], list[Remedy]]
    echo: bool = False
    """True where the break is what an earlier break left behind."""

    @functools.cached_property
    def examples(self) -> tuple[Example, ...]:
        return read_examples(example_folder(_RULES / "breaks", self.id))


class RecompileCase(msgspec.Struct, frozen=True):
    """A guard that failed and the source that made Dynamo install it: what a rule looks at."""

    finding: RecompileFinding
    spot: SourceSpot


class GuardRule(msgspec.Struct, frozen=True, dict=True):
    """A pattern of failed guards. The first rule that applies, by `order`, explains a recompile."""

    id: str
    order: int
    applies: Callable[[RecompileCase], bool]
    why: Callable[[RecompileCase], str]
    remedies: Callable[[RecompileCase], list[Remedy]]
    needs: tuple[str, ...] = ()
    """Wherever it applies, the guard's kind, its subject, its text or one of its values has one of
    these words: without them it need not be asked. Empty: ask it always."""

    @functools.cached_property
    def examples(self) -> tuple[Example, ...]:
        """`bad` recompiles, and this rule explains it; `good` compiles once."""
        return read_examples(example_folder(_RULES / "recompiles", self.id))


class ProgramCase(msgspec.Struct, frozen=True, dict=True):
    """A cause and the program around it: what a rule about programs looks at."""

    finding: BreakFinding | RecompileFinding | FailureFinding
    look: Callable[[], SourceSpot]
    sources: Sources

    @functools.cached_property
    def spot(self) -> SourceSpot:
        return self.look()

    @property
    def rule(self) -> str:
        """The rule that explains the cause."""
        return self.finding.rule or ""

    @functools.cached_property
    def _event(self) -> Event | None:
        events = self.sources.run.events_with(self.finding.because[:1])
        return events[0] if events else None

    @property
    def stack(self) -> tuple[Frame, ...]:
        """Of the first time that it was seen: outermost first, from the program's first line."""
        return tuple(self._event.stack) if self._event is not None else ()

    @functools.cached_property
    def compiled(self) -> CodeRef | None:
        """What was being compiled."""
        body = self._event.body if self._event is not None else None
        code = getattr(body, "frame", None)
        return code if isinstance(code, CodeRef) else None

    @functools.cached_property
    def traced(self) -> tuple[Frame, ...]:
        """The part of the stack that was being compiled, with the line that is meant."""
        found = list(self.stack[self._entry :]) if self._entry is not None else []
        place = self.finding
        if isinstance(place, RecompileFinding):
            known = [(each.file, each.line) for each in found]
            if place.is_placed and (place.file, place.line) not in known:
                function = self.function_around(place.file, place.line)
                name = function.name if function is not None else place.function
                found.append(Frame(place.file, place.line, name, source=place.source))
        return tuple(found)

    @functools.cached_property
    def caller(self) -> Frame | None:
        """The line of the user's that called what was compiled."""
        end = self._entry if self._entry is not None else len(self.stack)
        own = [each for each in self.stack[:end] if is_own(each.file)]
        return own[-1] if own else None

    @functools.cached_property
    def _entry(self) -> int | None:
        """Where in the stack compiled code begins; None where it shows none."""
        code = self.compiled
        if code is None:
            return None
        places = [(each.file, each.function) for each in self.stack]
        key = (code.file, code.function)
        return places.index(key) if key in places else None

    @functools.cached_property
    def own_files(self) -> tuple[str, ...]:
        """The user's files that lead to it, of which the text was kept."""
        files = dict.fromkeys([self.finding.file, *(each.file for each in reversed(self.stack))])
        return tuple([each for each in files if is_own(each) and self.sources.has(each)])

    @functools.cached_property
    def outlines(self) -> tuple[Outline, ...]:
        found = (self.sources.outline(file) for file in self.own_files[:_MOST_FILES])
        return tuple([each for each in found if each is not None])

    def function_around(self, file: str, line: int, name: str = "") -> Function | None:
        outline = self.sources.outline(file)
        return outline.function_at(line, name) if outline is not None else None

    @functools.cached_property
    def compile_calls(self) -> tuple[CompileCall, ...]:
        """Where the user's files ask for compilation."""
        return tuple([call for outline in self.outlines for call in outline.compiled])

    @property
    def compile_call(self) -> CompileCall | None:
        """The only one."""
        return self.compile_calls[0] if len(self.compile_calls) == 1 else None

    def says(self, *parts: str) -> bool:
        """Does PyTorch's own type, context or explanation of a break speak of any of these?"""
        told = self.finding
        if isinstance(told, BreakFinding):
            return _says(told.gb_type, told.context, told.explanation, parts)
        if isinstance(told, FailureFinding):
            return _says(told.gb_type or "", "", told.text, parts)
        return False

    def passes(self, *parts: str) -> bool:
        """Does the stack, or the line that is meant, lie in an installed package with one of these
        folders?"""
        return any(f"/{part}/" in file for file in self._installed for part in parts)

    @functools.cached_property
    def _installed(self) -> tuple[str, ...]:
        files = dict.fromkeys([self.finding.file, *(each.file for each in self.stack)])
        return tuple([each.replace("\\", "/") for each in files if not is_own(each)])


_MOST_FILES = 6
"""Of the user's files that lead to a cause. Chosen: each is parsed."""


class ProgramRule(msgspec.Struct, frozen=True, dict=True):
    """A pattern of whole programs: what is compiled is not what should be. The first rule that has
    words, by `order`, gives them; they come before what is said of the line."""

    id: str
    order: int
    applies: Callable[[ProgramCase], bool]
    """By what is told of the cause, without a look at the source."""
    words: Callable[[ProgramCase], str]
    """What to do, with the lines to write in the user's own names; empty where the source does not
    bear it out."""
    of_failures: bool = False
    """Does it know failures that are no graph break?"""

    @functools.cached_property
    def examples(self) -> tuple[Example, ...]:
        return read_examples(example_folder(_RULES / "programs", self.id))
