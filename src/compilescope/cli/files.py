"""Files that commands write for their user."""

from __future__ import annotations

import os
from pathlib import Path

from compilescope.errors import ToolError


def write_whole(path: Path, text: str) -> None:
    """Write `text` aside and rename it: a reader, or Ctrl-C, never meets half a file."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            # What a program named cannot always be encoded; the rest of the report can.
            part.write_text(text, encoding="utf-8", errors="backslashreplace")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise ToolError(f"Cannot write {path}: {error.strerror}.") from None
