"""Which processes of a program compilescope was in, and which of them imported torch.

The boot code in each Python process appends lines `PID WHAT` to one small file of the run: `start`,
`torch`, `failed REASON` and `end`. Without it, "no process imported torch" could not be told from
"no process could be watched".
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from compilescope.record.plain_files import open_plain

FILE_NAME = "processes"
_MOST_BYTES = 1 << 20
"""Chosen: lines of some ten bytes, for tens of thousands of processes; anyone may have written the
file."""


class Presence(msgspec.Struct, frozen=True):
    """What the processes of a program said of themselves."""

    started: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    torch: frozenset[int] = frozenset()
    """Those that imported it."""
    failed: tuple[str, ...] = ()
    """Why those that imported it could not be recorded."""


def begin_presence(folder: Path) -> None:
    """Without the file nobody writes to it: one that cannot be made is left out."""
    with suppress(OSError):
        (folder / FILE_NAME).touch()


def read_presence(folder: Path) -> Presence | None:
    """None: the run has no such file, as those that were recorded by an earlier version."""
    try:
        with open_plain(folder / FILE_NAME, links=False) as file:
            lines = file.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    said: dict[str, set[int]] = {"start": set(), "end": set(), "torch": set()}
    failed: dict[str, None] = {}  # In their order, each once.
    for line in lines:
        pid, _, what = line.partition(" ")
        kind, _, reason = what.partition(" ")
        if kind in said and pid.isascii() and pid.isdigit():
            said[kind].add(int(pid[:20]))
        elif kind == "failed":
            failed[reason[:400]] = None
    return Presence(
        frozenset(said["start"]), frozenset(said["end"]), frozenset(said["torch"]), tuple(failed)
    )
