"""Prints a document for every command: at most two screens, unless the user asks for all of it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from compilescope.apps.cli.options import has_colour, report_width
from compilescope.apps.cli.streams import put

if TYPE_CHECKING:
    from compilescope.report.blocks import Document
    from compilescope.report.section import Reading

F = TypeVar("F", bound=Callable[..., Any])
_SCREENS = 2
"""Chosen: what people scroll back to without looking for it."""
_USUAL_HEIGHT = 24
"""Of a terminal: for a reader whose height is not known."""
_LEAST_HEIGHT = 12
"""Chosen: a smaller window still gets a readable summary."""


def all_option(function: F) -> F:
    return click.option(
        "--all", "everything", is_flag=True, help="Print everything, not two screens of it."
    )(function)


def tell(document: Document, rest: str, *, everything: bool = False) -> None:
    """On stdout; `rest` is the command that shows what two screens have no room for."""
    put(told_text(document, "" if everything else rest))


def told_text(
    document: Document, rest: str, *, stream: IO[str] | None = None, reserved: int = 0
) -> str:
    """As `tell` prints it; without `rest` everything. Some lines may be reserved for the caller."""
    from compilescope.report.render.terminal import to_text
    from compilescope.report.size_limits import fit_lines

    stream = sys.stdout if stream is None else stream
    width = report_width()
    if rest:
        most = room(stream) - reserved
        document = fit_lines(document, most, lines_at(width), rest)
    return to_text(document, width=width, colour=has_colour(stream))


def kept(document: Document, name: str) -> str:
    """The command that shows all of a document that cannot be made again cheaply; empty where it
    fits as it is, or no file can hold it."""
    from compilescope.base.processes.cleaner import lasting_folder
    from compilescope.report.render.terminal import to_text

    text = to_text(document, width=report_width())
    if text.count("\n") <= room(sys.stdout):
        return ""
    try:
        import tempfile

        with tempfile.NamedTemporaryFile(
            "w",
            prefix=f"compilescope-{name}-",
            dir=lasting_folder(),
            suffix=".txt",
            delete=False,
            encoding="utf-8",
            errors="backslashreplace",
        ) as file:
            file.write(text)
    except OSError:
        return ""  # Better too long than lost.
    return shlex.join(["less", file.name])


def with_command(document: Document, label: str, command: str) -> Document:
    """One more line at its end: a command to copy."""
    import msgspec

    from compilescope.report.blocks import Paragraph, Part, Span, note, words

    line = Paragraph(words(f"{label} ", Span(command, "code")), unwrapped=True)
    last = Part("next", "", (note(""), line))
    return msgspec.structs.replace(document, parts=(*document.parts, last))


def with_one_cause(reading: Reading, document: Document, explain: Callable[[str], str]) -> Document:
    """A summary with the command that explains a cause of its list."""
    if len(reading.causes) < 2 or reading.digest.benchmarks:
        return document
    return with_command(document, "One in full:", explain("1"))


def lines_at(width: int) -> Callable[[Document], int]:
    """How many lines a document takes at this width."""
    from compilescope.report.render.terminal import to_text

    return lambda document: to_text(document, width=width).count("\n")


def room(stream: IO[str]) -> int:
    """Lines on two screens, less the one that the next prompt takes."""
    return _SCREENS * max(_height(stream), _LEAST_HEIGHT) - 1


def _height(stream: IO[str]) -> int:
    try:
        lines = os.get_terminal_size(stream.fileno()).lines if stream.isatty() else 0
    except (OSError, ValueError):
        lines = 0
    # A terminal that was never given a size says 0.
    return lines or _USUAL_HEIGHT
