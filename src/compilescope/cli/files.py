"""Options and helpers for files that commands write for the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def force_option(function: F) -> F:
    """Of commands that write files."""
    words = "Overwrite files that compilescope did not write."
    return click.option("--force", is_flag=True, help=words)(function)


def isolated_option(function: F) -> F:
    """Of commands that run a program many times."""
    words = "Run the program in a temporary copy of the working folder."
    return click.option("--isolated", is_flag=True, help=words)(function)


def write_whole(path: Path, text: str) -> None:
    """Write `text` aside and rename it: a reader, or Ctrl-C, never meets half a file."""
    from compilescope.outputs import write_output

    # What a program named cannot always be encoded; the rest of the report can.
    write_output(path, text.encode("utf-8", "backslashreplace"))
