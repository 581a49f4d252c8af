"""The steps of the tour: which there are, which were asked for, and running one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from compilescope.demo import steps
from compilescope.demo.command_process import run_command
from compilescope.demo.folder import OUTPUT, place_programs, write
from compilescope.demo.step import CommandResult, Result, Status, TourStep
from compilescope.errors import ToolError
from compilescope.plugins import discover


def all_steps(commands: Collection[str]) -> list[TourStep]:
    """In order; those whose commands this version of the tool has."""
    found = discover(steps, "STEP", TourStep)
    there = [step for step in found if _subcommands(step) <= set(commands)]
    return sorted(there, key=lambda step: step.order)


def _subcommands(step: TourStep) -> set[str]:
    return {each.words[1] for each in step.commands if each.words[0] == "compilescope"}


def choose(found: Sequence[TourStep], wanted: Sequence[str]) -> list[TourStep]:
    """The wanted steps and those whose results they read; all where none is named."""
    if not wanted:
        return list(found)
    by_id = {step.id: step for step in found}
    chosen: set[str] = set()
    open_ids = list(wanted)
    while open_ids:
        name = open_ids.pop()
        if name not in by_id:
            near = difflib.get_close_matches(name, by_id, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"The steps: {', '.join(by_id)}."
            raise ToolError(f"There is no step {name!r}.", hint=hint)
        if name not in chosen:
            chosen.add(name)
            open_ids += by_id[name].after
    return [step for step in found if step.id in chosen]


def obstacle(step: TourStep, before: Sequence[Result]) -> Result | None:
    """Why a step can't run: something is missing here, or a step it reads from did not succeed."""
    missing = step.missing()
    if missing:
        return Result(step, "unavailable", missing)
    done = {result.step.id: result.status for result in before}
    for name in step.after:
        status = done.get(name)
        if status != "ok":
            inherited: Status = "unavailable" if status == "unavailable" else "skipped"
            return Result(step, inherited, f"it reads the result of the step {name}")
    return None


def run_step(
    step: TourStep,
    folder: Path,
    environment: Mapping[str, str],
    *,
    heard: Callable[[str], None],
    ended: Callable[[CommandResult], None],
) -> Result:
    """Run its commands; the first that does not do what it should ends it."""
    place_programs(folder, step.programs)
    ran: list[CommandResult] = []
    for number, command in enumerate(step.commands, 1):
        heard(command.text)
        one = run_command(command, folder, environment, heard)
        ran.append(one)
        write(folder / OUTPUT / f"{step.order:02}-{step.id}-{number}.txt", one.plain)
        ended(one)
        if one.problem:
            return Result(step, "failed", f"{command.text}: {one.problem}", tuple(ran))
    absent = [name for name in step.makes if not (folder / name).exists()]
    if absent:
        return Result(step, "failed", f"it did not write {absent[0]}", tuple(ran))
    return Result(step, "ok", "", tuple(ran))
