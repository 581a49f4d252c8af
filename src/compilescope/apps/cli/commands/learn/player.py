"""The process that shows a lesson and runs it: prose, code, and what the code prints.

python -m compilescope.apps.cli.commands.learn.player LESSON [--step]
"""

from __future__ import annotations

import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.text import Text

from compilescope.apps.cli.options import has_colour, report_width
from compilescope.apps.learn.lesson import Lesson, LessonCell, find_lesson, new_module, run_cell
from compilescope.base.processes.fork import die_with_parent

if TYPE_CHECKING:
    from rich.console import Console


class _LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(self.text.plain, style="bold underline" if self.tag != "h1" else "bold reverse")
        if self.tag == "h1":
            text.pad(1)
        yield text


class LeftMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
    }


FAILED, LEFT = 1, 3
"""How the process ends if a cell raises, and if the reader leaves."""


def play(lesson: Lesson, *, step: bool) -> int:
    console = _console()
    names = vars(new_module("__main__", lesson.path))
    cells = [cell for cell in lesson.cells if cell.tag in ("", "exercise")]
    begun = time.monotonic()
    for at, cell in enumerate(cells):
        if cell.kind == "markdown":
            _prose(console, cell)
            continue
        _code(console, cell)
        if cell.tag == "exercise":
            continue
        if not _run(lesson, cell, names):
            return FAILED
        if step and at + 1 < len(cells) and not _continue(console):
            return LEFT
    _ending(console, lesson, time.monotonic() - begun)
    return 0


def _console() -> Console:
    from rich.console import Console
    from rich.theme import Theme

    colour = has_colour(sys.stdout)
    return Console(
        theme=Theme({"markdown.code": "cyan"}),  # Rich's own has a ground, black on any terminal.
        width=report_width(),
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )


def _prose(console: Console, cell: LessonCell) -> None:

    console.print()
    with console.capture() as drawn:
        console.print(LeftMarkdown(cell.text, code_theme="ansi_dark"))
    # Rich fills lines with blanks, which a file need not keep.
    for line in drawn.get().splitlines():
        console.file.write(line.rstrip() + "\n")


def _code(console: Console, cell: LessonCell) -> None:
    from rich.syntax import Syntax
    from rich.text import Text

    text = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(cell.text)
    text.rstrip()
    console.print()
    for line in text.split("\n"):
        shown = Text.assemble(("  │ ", "dim"), line)
        console.print(shown, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
    console.print()


def _run(lesson: Lesson, cell: LessonCell, names: dict[str, Any]) -> bool:
    """A cell that raises ends the lesson, with the traceback from the lesson's line inward."""
    try:
        run_cell(lesson, cell, names)
        return True
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != str(lesson.path):
            trace = trace.tb_next
        sys.stdout.flush()
        traceback.print_exception(type(error), error, trace or error.__traceback__)
        return False
    finally:
        sys.stdout.flush()


def _continue(console: Console) -> bool:
    console.print()
    try:
        return input("Enter for the next step, q to leave: ").strip().casefold() not in (
            "q",
            "quit",
        )
    except EOFError:
        return False


def _ending(console: Console, lesson: Lesson, seconds: float) -> None:
    from rich.text import Text

    name = f"{lesson.number:02}_answer.py"
    command = f"compilescope learn {lesson.number}"
    console.print()
    for label, rest in (
        ("Your turn:", f"{command} --exercise {name}"),
        ("Then:", f"{command} --check {name}"),
    ):
        console.print(Text.assemble((f"{label:<11}", "bold"), (rest, "cyan")), soft_wrap=True)
    console.print(Text(f"Lesson {lesson.number} ran in {seconds:.0f} s on this machine.", "dim"))


def main() -> None:
    die_with_parent()
    name, *options = sys.argv[1:]
    try:
        status = play(find_lesson(name), step="--step" in options)
    except KeyboardInterrupt:
        status = 130
    sys.stdout.flush()
    sys.exit(status)


if __name__ == "__main__":
    main()
