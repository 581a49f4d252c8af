"""Source files that happen to lie here under the names that a log gives.

A log may come from anywhere and name anything: a device or a pipe is never opened, and what does
not show the very line of the log is another program's.
"""

from __future__ import annotations

import functools

from compilescope.model.plain_files import read_source_text


def line_here(file: str, number: int) -> str:
    """The line as it is here, with its indentation; empty where there is none."""
    lines = _lines(file)
    return lines[number - 1] if 0 < number <= len(lines) else ""


def lines_here(file: str) -> tuple[str, ...]:
    """None where there is no such file, or it is none of text."""
    return _lines(file)


def text_here(file: str) -> str:
    return "\n".join((*_lines(file), ""))


@functools.lru_cache(maxsize=256)
def _lines(file: str) -> tuple[str, ...]:
    try:
        return tuple(read_source_text(file).split("\n")[:-1])
    except (OSError, ValueError, SyntaxError, UnicodeError):
        return ()
