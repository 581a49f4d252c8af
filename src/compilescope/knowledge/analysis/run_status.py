"""What a run says without being read whole: from its header, and the last lines of its files."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from pathlib import Path

from compilescope.knowledge.analysis.program_end import ProgramEnd, how_it_ended
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.event import Event
from compilescope.record.eventfile import event_files, last_events
from compilescope.record.header import RunHeader, signal_name
from compilescope.record.run import Run, is_live

NO_PROGRAM = "Python session"
"""Of a run that `compilescope.capture()` recorded: nothing was asked to run."""
_OURS = ("logs", "diff", "bench", "sweep", "fix", "preflight", "minify")


def status_of(header: RunHeader, *, live: bool | None = None) -> str:
    """`ok`, `exit 1`, `SIGKILL`, `running`, `cut short`, `open`, and `ended` where its exit status
    cannot be known. `live`: where it is known."""
    if header.signal is not None:
        return signal_name(header.signal) or ""
    if header.exit_status is not None:
        return "ok" if header.exit_status == 0 else f"exit {header.exit_status}"
    if header.automatic and header.ended_ns is not None:
        return "ended"
    if header.launcher_pid is None:
        return "ok" if header.ended_ns is not None else "open"
    return "running" if (is_live(header) if live is None else live) else "cut short"


def ended_by_the_last_lines(folder: Path, header: RunHeader) -> ProgramEnd:
    """How it ended; a run may be large."""
    # An exception is told of only where there may have been one.
    last = _last_events(folder) if header.exit_status != 0 else []
    return how_it_ended(Run(header, last, MemoryArtifacts(), live=is_live(header)))


def _last_events(folder: Path) -> list[Event]:
    """Of every file that can be read."""
    found: list[Event] = []
    with contextlib.suppress(OSError):
        for file in event_files(folder):
            with contextlib.suppress(OSError):
                found += last_events(file)
    return found


def program_of(header: RunHeader) -> str:
    """A short name of what ran: the same for every run of the same program."""
    command = header.command[1:] if header.command[:1] == ("compilescope",) else header.command
    if not command:
        return NO_PROGRAM
    first, rest = command[0], command[1:]
    if first == "-c":
        return "python -c"
    if first == "-":
        return "python -"
    if first == "-m":
        return " ".join(("python -m", *rest[:1]))
    if first == "torchrun":
        script = next((word for word in rest if word.endswith(".py")), "")
        return f"torchrun {_short(script, header.cwd)}" if script else first
    if first == "pytest" or first in _OURS:
        return " ".join((first, *_subjects(rest, header.cwd)))
    return _short(first, header.cwd)


def _subjects(words: tuple[str, ...], cwd: str) -> tuple[str, ...]:
    """What a command is about: its first words, else its last; and the models that it names."""
    if "--dir" in words:  # Where runs are stored says nothing of it.
        at = words.index("--dir")
        words = (*words[:at], *words[at + 2 :])
    named = [after for word, after in itertools.pairwise(words) if word == "--model"]
    leading = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
    if not leading and words and ".py" in words[-1]:
        leading = [words[-1]]
    # `.` has no name of its own.
    paths = (os.path.normpath(os.path.join(cwd, word)) for word in leading)
    found = named or [
        os.path.basename(path) or word for path, word in zip(paths, leading, strict=True)
    ]
    return (", ".join(found),) if found else ()


@functools.lru_cache(4096)
def _short(script: str, cwd: str) -> str:
    """The file and its folder: many programs are called train.py."""
    path = os.path.normpath(os.path.join(cwd, script))
    return "/".join(path.replace("\\", "/").strip("/").split("/")[-2:]) or script
