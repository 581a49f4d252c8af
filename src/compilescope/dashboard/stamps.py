"""What tells whether a run has changed since it was looked at, without reading it."""

from __future__ import annotations

import os
from pathlib import Path

from compilescope.errors import ToolError
from compilescope.model.header import FILE_NAME, read_header
from compilescope.model.run import is_live

Stamp = tuple[object, ...]
_FILES = ("events-", "sweep.json")


def stamp_of(folder: Path) -> Stamp:
    """Names, sizes and times of the files that say what happened, and whether the run goes on:
    one whose launcher was killed looks other than before, though no file has changed."""
    try:
        with os.scandir(folder) as entries:
            files = sorted(
                (entry.name, status.st_size, status.st_mtime_ns)
                for entry in entries
                if entry.name == FILE_NAME or entry.name.startswith(_FILES)
                for status in (entry.stat(follow_symlinks=False),)
            )
    except OSError:
        return ("gone",)
    try:
        live = is_live(read_header(folder))
    except ToolError:
        live = False
    return (live, *files)
