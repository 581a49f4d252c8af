"""Breaks in a compiler's own override: behind them stands a line of the program, or another break.

tt-xla runs every operator through a `__torch_function__` of its own. Where the frame compiled is
the program's, the line that called the operator is to blame. Where it is the override's own frame,
an operator ran through it eagerly, after a break: an echo of that one.
"""

from __future__ import annotations

from dataclasses import dataclass

from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.dynamo.frames import Compiled
from compilescope.logs.text.dynamo.origins import is_override, is_program, origin
from compilescope.logs.words.tracebacks import make_frame
from compilescope.model.bodies import BreakEcho, GraphBreak
from compilescope.model.stack import Frame

_MOST_SITES = 20_000
"""Chosen: as many as there are breaks."""


@dataclass
class Held:
    """A break of which the log may yet tell more."""

    body: GraphBreak
    stack: tuple[Frame, ...]
    file: str
    line: int
    time_ns: int
    compile_id: str | None
    suppressed: bool
    """torch left its stack out: the same break was reported before."""
    epoch: int = 0
    compiled: Compiled | None = None


class Echoes:
    """The echoes of one process."""

    def __init__(self, console: Console, process: ConsoleProcess) -> None:
        self._console = console
        self._process = process
        self._places: dict[tuple[str, int], str] = {}

    def remember(self, stack: tuple[Frame, ...], break_id: str) -> None:
        """A break of the program's own was written."""
        site = _site(stack)
        if site is not None and len(self._places) < _MOST_SITES:
            self._places[site.file, site.line] = break_id

    def takes(self, held: Held, last_id: str | None) -> bool:
        """Write the break as an echo, if it is one."""
        if not self._is_echo(held):
            return False
        body = held.body
        echo = BreakEcho(
            gb_type=body.gb_type,
            gb_id=body.gb_id,
            explanation=body.explanation,
            context=body.context,
            override=held.stack[-1] if held.stack else make_frame(held.file, held.line, ""),
            because=self._echoed(held) or last_id,
        )
        self._console.event(
            self._process,
            echo,
            stack=held.stack,
            compile_id=held.compile_id,
            time_ns=held.time_ns,
            epoch=held.epoch,
        )
        return True

    def _is_echo(self, held: Held) -> bool:
        if not is_override(held.file):
            return False
        if held.compiled is not None:
            return origin(held.compiled.code.file) == "torch"
        if held.suppressed:
            return _site(held.stack) is None
        # Without the frame's name: an operator runs through the override by itself only after a
        # break at its line.
        return self._echoed(held) is not None

    def _echoed(self, held: Held) -> str | None:
        site = _site(held.stack)
        return self._places.get((site.file, site.line)) if site else None


def _site(stack: tuple[Frame, ...]) -> Frame | None:
    return next((frame for frame in reversed(stack) if is_program(frame)), None)
