"""`compilescope learn`: lessons on torch.compile that run on this machine."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compilescope.apps.cli.options import json_option, limit_option, print_json, write_whole
from compilescope.apps.cli.output import tell
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.apps.learn.lesson import Lesson
    from compilescope.report.blocks import Block

GROUP = "Learn"
_LIMIT_S = 180.0
"""Chosen: room to compile an exercise on a busy machine."""
_LEFT = 3
"""The status of `player` when its reader left the lesson early."""
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("learn", short_help="Learn how torch.compile works: lessons that run here.")
@click.argument("name", required=False, metavar="[LESSON]")
@click.option("--list", "listed", is_flag=True, help="List the lessons.")
@json_option
@click.option("--all", "everything", is_flag=True, help="Run all lessons, one after the other.")
@click.option("--step", is_flag=True, help="Wait for Enter after each step.")
@click.option("--notebook", type=_FILE, metavar="FILE", help="Write the lesson as a notebook.")
@click.option("--exercise", type=_FILE, metavar="FILE", help="Write the exercise, to be edited.")
@click.option("--check", type=_FILE, metavar="FILE", help="Run your answer and check it.")
@click.option("--solution", is_flag=True, help="Print a solution of the exercise.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@limit_option("--check", _LIMIT_S, old_name="--timeout")
def COMMAND(
    name: str | None,
    listed: bool,
    as_json: bool,
    everything: bool,
    step: bool,
    notebook: Path | None,
    exercise: Path | None,
    check: Path | None,
    solution: bool,
    force: bool,
    limit: float,
) -> int:
    """Learn how torch.compile works, by running it.

    LESSON is a number or a name from the list. Each lesson runs on this machine, shows what just
    happened, and ends with an exercise that --check runs. Without LESSON, a menu.

    Exit codes: 0 right, or the lesson ran; 1 the answer is wrong, or a lesson failed; 2 error.
    """
    from compilescope.apps.learn.lesson import find_lesson

    modes = {
        "--notebook": notebook,
        "--exercise": exercise,
        "--check": check,
        "--solution": solution,
    }
    chosen = [option for option, value in modes.items() if value]
    _refuse_mixtures(name, chosen, listed or as_json, everything, step)
    if listed or as_json:
        return _list(as_json)
    if everything:
        return _run_all()
    if name is None:
        return _menu(step)
    lesson = find_lesson(name)
    if notebook is not None:
        return _write_notebook(lesson, notebook, force)
    if exercise is not None:
        return _write_exercise(lesson, exercise, force)
    if check is not None:
        return _check(lesson, check, limit)
    if solution:
        print(lesson.tagged("solution").text)
        return 0
    return _run(lesson, step)


def _refuse_mixtures(
    name: str | None, chosen: Sequence[str], listed: bool, everything: bool, step: bool
) -> None:
    if len(chosen) > 1:
        raise ToolError(f"{chosen[0]} and {chosen[1]} can't be combined.")
    if chosen and name is None:
        raise ToolError(
            f"{chosen[0]} needs a lesson.", f"For example: compilescope learn 1 {chosen[0]}"
        )
    for option, given in (("--list", listed), ("--all", everything)):
        if given and (name is not None or chosen):
            raise ToolError(f"{option} takes no lesson.")
    if listed and everything:
        raise ToolError("--list and --all can't be combined.")
    if step and (chosen or listed or everything):
        raise ToolError("--step is for running one lesson.")
    if step and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ToolError("--step waits for Enter, so it needs a terminal.")


def _list(as_json: bool) -> int:
    from compilescope.apps.learn.lesson import all_lessons

    lessons = all_lessons()
    if as_json:
        print_json({"lessons": [_row(lesson) for lesson in lessons]})
        return 0
    _tell("Lessons", f"{len(lessons)} that run on this machine", [_table(lessons)])
    print("\nRun one:   compilescope learn 1")
    return 0


def _row(lesson: Lesson) -> dict[str, Any]:
    return {
        "number": lesson.number,
        "slug": lesson.slug,
        "title": lesson.title,
        "question": lesson.question,
        "path": str(lesson.path),
    }


def _table(lessons: Sequence[Lesson]) -> Block:
    from compilescope.report.blocks import Facts, Span, prose

    rows = []
    for lesson in lessons:
        words = (Span(f"{lesson.title}: ", "strong"), *prose(lesson.question))
        rows.append((f"{lesson.number:>2}  {lesson.slug}", words))
    return Facts(tuple(rows))


def _tell(title: str, subtitle: str, blocks: Sequence[Block]) -> None:
    from compilescope.report.blocks import Document, Part

    tell(Document(title, subtitle, (Part("lessons", "", tuple(blocks)),)), "")


def _menu(step: bool) -> int:
    from compilescope.apps.learn.lesson import find_lesson

    _list(as_json=False)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return 0
    while True:
        try:
            name = input("\nNumber of a lesson (Enter quits): ").strip()
        except EOFError:
            name = ""
        if not name:
            return 0
        try:
            return _run(find_lesson(name), step)
        except ToolError as error:
            print(error.message)


def _run(lesson: Lesson, step: bool) -> int:
    from compilescope.apps.cli.commands.learn.processes import need_torch, play_lesson

    need_torch()
    status = play_lesson(lesson, step=step)
    if status in (0, _LEFT):
        return 0
    if status == 130:
        raise KeyboardInterrupt
    print(f"compilescope: lesson {lesson.number} failed.", file=sys.stderr)
    return 1


def _run_all() -> int:
    from compilescope.apps.cli.commands.learn.processes import need_torch
    from compilescope.apps.learn.lesson import all_lessons
    from compilescope.report.blocks import Span, Table, words

    need_torch()
    rows = []
    for lesson in all_lessons():
        begun = time.monotonic()
        failed = _run(lesson, False)
        seconds = words(f"{time.monotonic() - begun:.0f} s")
        verdict = words(Span("failed", "bad") if failed else Span("ok", "good"))
        rows.append((words(str(lesson.number)), words(lesson.title), seconds, verdict))
    bad = sum(row[-1][0].text == "failed" for row in rows)
    print()
    subtitle = f"{len(rows)} run, {bad} failed" if bad else f"{len(rows)} run"
    _tell("Lessons", subtitle, [Table(("", "lesson", "took", ""), tuple(rows), (0, 2))])
    return 1 if bad else 0


def _write_notebook(lesson: Lesson, path: Path, force: bool) -> int:
    from compilescope.apps.learn.lesson import to_notebook

    _keep_existing(path, force)
    write_whole(path, to_notebook(lesson))
    print(f"Lesson {lesson.number} is in {path}.")
    return 0


def _write_exercise(lesson: Lesson, path: Path, force: bool) -> int:
    _keep_existing(path, force)
    task = next(c.text for c in reversed(list(lesson.body)) if c.kind == "markdown")
    head = "\n".join(f"# {line}".rstrip() for line in task.splitlines())
    write_whole(path, f"{head}\n\n{lesson.tagged('exercise').text}\n")
    command = shlex.join(["compilescope", "learn", str(lesson.number), "--check", str(path)])
    print(f"The exercise is in {path}. Edit it, then run:\n  {command}")
    return 0


def _keep_existing(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise ToolError(f"{path} exists.", "Use --force to overwrite it.")


def _check(lesson: Lesson, path: Path, seconds: float) -> int:
    from compilescope.apps.cli.commands.learn.processes import judge_file, need_torch

    if not path.is_file():
        command = f"compilescope learn {lesson.number} --exercise {shlex.quote(str(path))}"
        raise ToolError(f"There is no file {path}.", f"Begin it with: {command}")
    need_torch()
    verdict = judge_file(lesson, path, seconds)
    if verdict.error:
        raise ToolError(verdict.error)
    if verdict.wrong:
        print(f"Not yet. {verdict.wrong}")
        return 1
    print("Right.")
    return 0
