"""Any text file as a candidate, and passes over its lines, words and characters.

For files that are no Python; what the lines mean is known to the check alone.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from compilescope.minify.deletion import delete_runs
from compilescope.minify.engine import Pass

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LARGEST_FOR_CHARACTERS = 4000


@dataclass(frozen=True)
class TextCandidate:
    """The whole file."""

    content: str

    def text(self) -> str:
        return self.content

    def size(self) -> tuple[int, ...]:
        """Words, lines, characters, and then the text as one number."""
        text = self.content
        words = sum(1 for piece in _WORDS.findall(text) if not piece.isspace())
        order = int.from_bytes(text.encode("utf-8", "surrogatepass"), "big")
        return (words, text.count("\n"), len(text), order)


Proposing = Generator[TextCandidate, bool, None]


def _without(pieces: Sequence[str]) -> Proposing:
    def candidate(gone: frozenset[int]) -> TextCandidate:
        return TextCandidate("".join(p for i, p in enumerate(pieces) if i not in gone))

    # From the end: what is said later needs what was said before.
    yield from delete_runs(range(len(pieces))[::-1], candidate)


def _lines(present: TextCandidate) -> Proposing:
    yield from _without(present.content.splitlines(keepends=True))


def _words(present: TextCandidate) -> Proposing:
    yield from _without(_WORDS.findall(present.content))


def _characters(present: TextCandidate) -> Proposing:
    if len(present.content) <= _LARGEST_FOR_CHARACTERS:
        yield from _without(list(present.content))


TEXT_PASSES = (
    Pass("lines", 10, _lines),
    Pass("words", 20, _words),
    Pass("characters", 30, _characters),
)
