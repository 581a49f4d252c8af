"""What `compilescope demo` prints: each step as it runs, and a summary."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from compilescope.apps.cli.options import has_colour, print_json, report_width
from compilescope.apps.cli.output import tell
from compilescope.apps.cli.progress import CurrentWork, working
from compilescope.apps.cli.streams import put
from compilescope.apps.demo.steps import TourStep
from compilescope.apps.demo.tour import (
    OUTPUT,
    CommandResult,
    StepResult,
    make_folder,
    obstacle,
    run_step,
)
from compilescope.base.settings import DEFAULT_DIR
from compilescope.base.texts import visible

_MARKS = {"ok": "ok", "failed": "FAILED", "skipped": "skipped", "unavailable": "not available"}
_STYLES = {"ok": "good", "failed": "bad", "skipped": "dim", "unavailable": "warn"}


def print_list(steps: Sequence[TourStep], *, as_json: bool) -> None:
    """What there is to see."""
    if as_json:
        print_json({"steps": [_listed(step) for step in steps]})
        return
    from compilescope.report.blocks import Document, Facts, Part, words

    facts = Facts(tuple((step.id, words(step.title + ": " + step.text)) for step in steps))
    tell(
        Document("Demo", "Run one with: compilescope demo --only STEP", (Part("", "", (facts,)),)),
        "",
    )


def take_tour(steps: Sequence[TourStep], given: Path | None, *, asks: bool, as_json: bool) -> int:
    """Run the steps, and say what came of them."""
    folder = make_folder(given)
    results: list[StepResult] = []
    stopped = False
    if not as_json:
        print(f"{len(steps)} steps, in {folder}")
    try:
        for number, step in enumerate(steps, 1):
            result = _take(step, (number, len(steps)), folder, results, asks, as_json)
            if result is None:
                break
            results.append(result)
    except KeyboardInterrupt:
        stopped = True
    if as_json:
        print_json(_value(results, folder))
    else:
        _print_summary(results, len(steps), folder)
    if stopped:
        raise KeyboardInterrupt
    return exit_code(results)


def exit_code(results: Sequence[StepResult]) -> int:
    """A tour of which nothing could run is no success."""
    failed = any(result.status == "failed" for result in results)
    nothing = bool(results) and all(result.status == "unavailable" for result in results)
    return 1 if failed or nothing else 0


def _take(
    step: TourStep,
    place: tuple[int, int],
    folder: Path,
    before: Sequence[StepResult],
    asks: bool,
    as_json: bool,
) -> StepResult | None:
    """What came of one step; None if the user quits."""
    if not as_json:
        _print_heading(step, place)
    blocked = obstacle(step, before)
    if blocked is not None:
        if not as_json:
            print(f"{_MARKS[blocked.status].capitalize()}: {blocked.reason}.")
        return blocked
    answer = _ask() if asks else ""
    if answer == "q":
        return None
    if answer == "s":
        return StepResult(step, "skipped", "you skipped it")
    result = _run(step, place, folder, as_json)
    if result.status == "failed" and not as_json:
        put(_styled(f"Failed: {visible(result.reason)}.", "red") + "\n")
    return result


def _ask() -> str:
    """The first letter of the answer; the end of the input quits."""
    while True:
        try:
            answer = input("Enter: run it   s: skip   q: quit  > ").strip().lower()[:1]
        except EOFError:
            print()
            return "q"
        if answer in ("", "s", "q"):
            return answer


def _run(step: TourStep, place: tuple[int, int], folder: Path, as_json: bool) -> StepResult:
    """Its commands' output is printed when they end: a bar is drawn until then."""
    ended: list[CommandResult] = []
    colour = {"FORCE_COLOR": "1"} if has_colour(sys.stdout) and not as_json else {"NO_COLOR": "1"}
    environment = {**colour, "COLUMNS": str(report_width())}
    done, total = place
    with working("demo") as work:
        work.show(step.title, done - 1, total)
        result = run_step(
            step,
            folder,
            environment,
            heard=lambda words: _show(work, step, words, place),
            ended=ended.append,
        )
    if not as_json:
        for number, one in enumerate(ended, 1):
            _print_output(one, step, number)
        if result.status == "ok":
            for name in step.makes:
                print(f"Wrote {folder / name}")
    return result


def _show(work: CurrentWork, step: TourStep, words: str, place: tuple[int, int]) -> None:
    work.show(f"{step.title}: {words}", place[0] - 1, place[1])


def _print_heading(step: TourStep, place: tuple[int, int]) -> None:
    width = report_width()
    count = f"{place[0]} of {place[1]}"
    title = f"── {step.title} "
    put("\n" + _styled(f"{title:─<{width - len(count) - 1}} {count}", "cyan") + "\n")
    print(textwrap.fill(step.text, width))
    print()
    for command in step.commands:
        put("  " + _styled(f"$ {command.text}", "bold") + "\n")
    print()
    sys.stdout.flush()


def _print_output(ran: CommandResult, step: TourStep, number: int) -> None:
    if len(step.commands) > 1:
        put(("\n" if number > 1 else "") + _styled(f"$ {ran.command.text}", "bold") + "\n")
    shown, left = shown_lines(ran)
    # Of our own programs and commands, which have cleaned what they print.
    put("\n".join(shown) + "\n")
    if left:
        file = f"{OUTPUT}/{step.order:02}-{step.id}-{number}.txt"
        put(_styled(f"… {left} more lines in {file}", "dim") + "\n")
    put(_styled(f"exit status {ran.exit_status}, {ran.seconds:.1f} s", "dim") + "\n")


def shown_lines(ran: CommandResult) -> tuple[list[str], int]:
    """What matters of its output, and how many lines that leaves out."""
    lines = ran.output.strip("\n").splitlines()
    since = ran.command.since
    start = next((at for at, line in enumerate(lines) if since in line), 0) if since else 0
    shown = lines[start : start + ran.command.lines]
    return shown, len(lines) - len(shown)


def _print_summary(results: Sequence[StepResult], total: int, folder: Path) -> None:
    from compilescope.report.blocks import Block, Document, Part, Span, Table, note, words

    rows = tuple(
        (
            words(result.step.title),
            words(Span(_MARKS[result.status], _STYLES[result.status])),  # type: ignore[arg-type]
            words(f"{result.seconds:.1f} s" if result.ran else ""),
            words(result.reason),
        )
        for result in results
    )
    good = sum(result.status == "ok" for result in results)
    seconds = sum(result.seconds for result in results)
    table = Table(("step", "", "time", ""), rows, numeric=(2,))
    text = f"{good} of {total} steps did what they should, in {seconds:.0f} s."
    blocks: list[Block] = [table] if rows else []
    blocks.append(note(f"Programs, runs and output: {folder}"))
    runs = folder / DEFAULT_DIR
    if runs.is_dir():
        blocks.append(note(f"In a browser: compilescope serve --dir {shlex.quote(str(runs))}"))
    print()
    tell(Document("Summary", text, (Part("", "", tuple(blocks)),)), "")


def _styled(text: str, style: str) -> str:
    if not has_colour(sys.stdout):
        return text
    marks: dict[str, Any] = {style: True} if style in ("bold", "dim") else {"fg": style}
    return click.style(text, **marks)


def _listed(step: TourStep) -> dict[str, Any]:
    commands = [{"command": each.text, "exit_expected": each.expected} for each in step.commands]
    return {
        "step": step.id,
        "title": step.title,
        "text": step.text,
        "after": step.after,
        "missing": step.missing(),
        "commands": commands,
    }


def _value(results: Sequence[StepResult], folder: Path) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "exit_code": exit_code(results),
        "steps": [_told(result) for result in results],
    }


def _told(result: StepResult) -> dict[str, Any]:
    """A command that was not reached has no status."""
    commands = []
    for at, command in enumerate(result.step.commands):
        ran = result.ran[at] if at < len(result.ran) else None
        commands.append(
            {
                "command": command.text,
                "exit_expected": command.expected,
                "exit_status": None if ran is None else ran.exit_status,
                "seconds": None if ran is None else round(ran.seconds, 3),
            }
        )
    return {
        "step": result.step.id,
        "title": result.step.title,
        "status": result.status,
        "reason": result.reason,
        "seconds": round(result.seconds, 3),
        "commands": commands,
    }
