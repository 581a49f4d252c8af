"""What the engine asks of the reader of a text format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from compilescope.logs.text.console import Console
from compilescope.logs.text.lines import Tag


class TextReader(Protocol):
    """One format's state in one log. It may be handed any line at all, in any order."""

    noise: tuple[bytes, ...]
    """Lines that hold one of these tell nothing, to no reader; they are never handed out."""
    markers: tuple[bytes, ...]
    """Where a block holds none of these, and the reader is not in the middle of something, its
    lines are not for it."""

    def attach(self, console: Console) -> None:
        """Called once, before the first line."""
        ...

    def skipped(self, lines: int) -> None:
        """Told of the noise that was left out."""
        ...

    @property
    def busy(self) -> bool:
        """In the middle of something that spans lines."""
        ...

    def line(self, line: bytes, tag: Tag) -> bool:
        """Take a line without its tags; False where it is not of this format."""
        ...

    def run(self, lines: Sequence[bytes], start: int) -> int:
        """Take as many untagged lines from `start` on as go on with what is open: the first that
        does not. For bodies of thousands of lines."""
        ...

    def finish(self) -> None:
        """The log has ended: write what is still open, and what was counted."""
        ...


@runtime_checkable
class Stamper(Protocol):
    """The reader of lines that carry a prefix which names their process."""

    heads: set[bytes]
    """How the prefixes seen so far begin: six bytes of each."""

    def run_stamped(self, lines: Sequence[bytes], start: int) -> int:
        """Take lines by their prefix, tags and all, from `start` on: the first that has none."""
        ...


class NoStamper:
    """Where no format has such lines."""

    def __init__(self) -> None:
        self.heads: set[bytes] = set()

    def run_stamped(self, lines: Sequence[bytes], start: int) -> int:
        return start
