"""What fixes ask of a run's events again and again, by what they ask for: read once a run."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import msgspec

from compilescope.record.bodies import CompileTime, GraphBreak, GraphCaptured, Recompile
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, shown_code

Place = tuple[str, int, str]
"""File, first line and name of a function."""


class EventIndex(msgspec.Struct):
    """Events of one run by the code that they are about."""

    compiled: dict[Place, list[Event]] = msgspec.field(default_factory=dict)
    """Compilations and recompiles of each function, as the user sees it."""
    recompiled: dict[tuple[str, int], list[Recompile]] = msgspec.field(default_factory=dict)
    """By file and first line."""
    traced: set[Place] = msgspec.field(default_factory=set)
    """Every code object that Dynamo looked at."""
    _values: dict[tuple[str, int], dict[str, set[str]]] = msgspec.field(default_factory=dict)

    def values_seen(self, file: str, line: int) -> dict[str, set[str]]:
        """Of the function that begins there: to what each guard is about, the values that failed
        it or that it was made for."""
        if (file, line) not in self._values:
            found = self._values[file, line] = {}
            for body in self.recompiled.get((file, line), ()):
                for failed in (each for entry in body.entries for each in entry.failed):
                    found.setdefault(failed.subject, set()).update((failed.expected, failed.actual))
        return self._values[file, line]


_known: WeakKeyDictionary[Run, EventIndex] = WeakKeyDictionary()


def index_of(run: Run) -> EventIndex:
    if run not in _known:
        _known[run] = _read(run)
    return _known[run]


def forget_index(run: Run) -> None:
    """It is as large as what a report keeps of a run, and no longer needed when the fixes have
    answered."""
    _known.pop(run, None)


def _read(run: Run) -> EventIndex:
    found = EventIndex()
    # Thousands of events share the name of their code.
    codes: dict[int, CodeRef | None] = {}
    codes |= {id(body.frame): body.frame for _, body in run.of(GraphCaptured)}
    codes |= {id(body.frame): body.frame for _, body in run.of(GraphBreak)}
    codes |= {id(body.frame): body.frame for _, body in run.of(CompileTime)}
    traced = filter(None, codes.values())
    found.traced.update([(code.file, code.line, code.function) for code in traced])
    for event in run.events:
        body = event.body
        if isinstance(body, (CompileTime, Recompile)) and body.frame is not None:
            code = shown_code(body.frame, event.stack)
            place = (code.file, code.line, code.function)
            found.compiled.setdefault(place, []).append(event)
            if isinstance(body, Recompile):
                found.recompiled.setdefault(place[:2], []).append(body)
    return found
