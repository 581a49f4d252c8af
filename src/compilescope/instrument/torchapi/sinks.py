"""`Sink`, to which hooks report what they see, and the sinks of all captures that are on now.

Code that is no hook but has something to report, such as a backend, reports to those as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Protocol

from compilescope.record.bodies import Body
from compilescope.record.stack import Frame


class Sink(Protocol):
    """Where hooks put what they see. The recorder is one."""

    def emit(
        self,
        body: Body,
        stack: Sequence[Frame] = (),
        compile_id: str | None = None,
        sources: Iterable[Frame] = (),
        more: bool = False,
    ) -> str:
        """Append an event; its id comes back. The files that `sources` names are kept. One that has
        `more` to follow within its compilation may be written with that."""
        ...

    def artifact(self, text: str, kind: str) -> str: ...
    def fault(self, where: str, error: BaseException) -> None: ...
    def new_epoch(self) -> None: ...


_active: list[Sink] = []


def announce(sink: Sink, until: ExitStack) -> None:
    """The sink is there to be written to until the stack is closed."""
    _active.append(sink)
    until.callback(_active.remove, sink)


def active_sinks() -> tuple[Sink, ...]:
    return tuple(_active)
