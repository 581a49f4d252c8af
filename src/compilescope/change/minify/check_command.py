"""`minify --check`: makes a file of any kind smaller while the user's own command accepts it.

Python is reduced by its syntax tree. Of all else lines, words and characters are deleted: what
they mean is known to the command alone.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilescope.base.errors import ToolError
from compilescope.base.processes.child import run_within
from compilescope.base.processes.deadline import Deadline, OutOfTime
from compilescope.change.minify.deletion import delete_runs
from compilescope.change.minify.engine import Pass, Reduction, ReductionLimits, reduce
from compilescope.change.minify.judgements import Outcome
from compilescope.change.minify.source.candidate import parse
from compilescope.change.minify.source.minifier import all_passes
from compilescope.record.plain_files import read_given

_PIECES = re.compile(r"\s+|\w+|[^\w\s]")
_LARGEST_FOR_CHARACTERS = 4000
"""Letters of a file that is also reduced letter by letter. Chosen: each try is a run of the user's
command, and a long file would need thousands."""


@dataclass(frozen=True)
class TextCandidate:
    """The whole file."""

    content: str

    def text(self) -> str:
        return self.content

    def size(self) -> tuple[int, ...]:
        """Words, lines, characters, and then the text as one number."""
        text = self.content
        words = sum(1 for piece in _PIECES.findall(text) if not piece.isspace())
        order = int.from_bytes(text.encode("utf-8", "surrogatepass"), "big")
        return (words, text.count("\n"), len(text), order)


Proposing = Generator[TextCandidate, bool, None]


def _without(pieces: Sequence[str]) -> Proposing:
    def candidate(gone: frozenset[int]) -> TextCandidate:
        return TextCandidate("".join(p for i, p in enumerate(pieces) if i not in gone))

    # From the end: what is said later needs what was said before.
    yield from delete_runs(range(len(pieces))[::-1], candidate)


def _less_lines(present: TextCandidate) -> Proposing:
    yield from _without(present.content.splitlines(keepends=True))


def _less_words(present: TextCandidate) -> Proposing:
    yield from _without(_PIECES.findall(present.content))


def _less_characters(present: TextCandidate) -> Proposing:
    if len(present.content) <= _LARGEST_FOR_CHARACTERS:
        yield from _without(list(present.content))


TEXT_PASSES = (
    Pass("lines", 10, _less_lines),
    Pass("words", 20, _less_words),
    Pass("characters", 30, _less_characters),
)


class CommandCheck:
    """Judges files by a command."""

    def __init__(
        self, command: str, name: str, limit_s: float, deadline: Deadline | None = None
    ) -> None:
        self.words = _words(command)
        self._name = name
        self._limit_s = limit_s
        self._deadline = deadline or Deadline()

    def __call__(self, candidate: Any) -> Outcome:
        return self.judge(candidate.text())

    def judge(self, text: str) -> Outcome:
        limit_s = self._deadline.limit(self._limit_s)
        with tempfile.TemporaryDirectory(
            prefix="compilescope-check-", ignore_cleanup_errors=True
        ) as folder:
            path = Path(folder, self._name)
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
            try:
                status = run_within(
                    [*self.words, str(path)],
                    limit_s,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                ).returncode
            except subprocess.TimeoutExpired:
                if limit_s < self._limit_s:
                    raise OutOfTime from None
                return "timeout"
        if status < 0:
            return "crashed"
        return "kept" if status == 0 else "lost"


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"--check {command!r} cannot be parsed: {error}.") from None
    if not words:
        raise ToolError("--check needs a command.")
    found = shutil.which(words[0])
    if found is None:
        hint = "Make it executable with: chmod +x" if os.path.exists(words[0]) else ""
        raise ToolError(f"--check: there is no command {words[0]}.", hint=hint)
    # It runs in another folder: its own files are named from here.
    rest = [os.path.abspath(word) if os.path.exists(word) else word for word in words[1:]]
    return [os.path.abspath(found), *rest]


def reduce_file(
    text: str,
    check: CommandCheck,
    *,
    jobs: int,
    state: Path | None,
    limits: ReductionLimits,
    progress: Any,
) -> Reduction[Any]:
    """As Python where it is Python, else as lines and words."""
    start: Any
    passes: list[Pass[Any]]
    try:
        start, passes = parse(text), list(all_passes())
    except ToolError:
        start, passes = TextCandidate(text), list(TEXT_PASSES)
    tell: Any = progress
    return reduce(
        start,
        passes,
        check,
        jobs=jobs,
        state=state,
        purpose=shlex.join(check.words),
        limits=limits,
        progress=tell,
    )


def read_any(path: Path) -> str:
    try:
        return read_given(path).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}.") from None
