"""`compilescope logs --script`: the log's program with fixes, and what is said of it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilescope.apps.cli.progress import ended_in_order, working
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.change.repair.delivery.emitter import LoggedScript
    from compilescope.instrument.recorder.target import Target
    from compilescope.record.run import Run

_MOST_LISTED = 10
"""Chosen: what is read at a glance; the rest is counted."""


def write_fixed(
    path: Path,
    script: str,
    run: Run,
    *,
    is_for_a_device: bool,
    budget: float | None = None,
    folders: tuple[str, ...] = (),
    force: bool = False,
) -> dict[str, Any]:
    """Beside the original, and the run in `path` is told; gives what was done and what is left, for
    the JSON."""
    from compilescope.apps.cli.isolation import announce
    from compilescope.change.repair.delivery.logged import fix_from_log
    from compilescope.change.repair.search.options import SearchOptions
    from compilescope.record.command_run import append_bodies

    target = program_of(script)
    announce("logs", offered=False)
    with ended_in_order(pausing=True), working("logs") as work:
        options = SearchOptions(
            budget_s=budget,
            timed=False,
            plain=is_for_a_device or names_device(target.words[0]),
            progress=work.show,
            tell=work.tell,
            say=work.say,
        )
        made = fix_from_log(target, run, options, folders, force=force)
    append_bodies(path, made.attempts)
    _tell(made)
    return {
        "script": made.path,
        "done": made.done,
        "unverified": made.unverified,
        "left": made.left,
        "verified": made.verified,
        "reason": made.reason,
        "proof": made.proof,
    }


def write_repros(
    path: Path,
    run: Run,
    script: str | None,
    *,
    is_for_a_device: bool,
    asked: bool,
    folders: tuple[str, ...] = (),
) -> None:
    """Into the run's folder. Only a script that the user names is run, or one in a folder that they
    name: a log may name any file."""
    from compilescope.change.fixes.program_files import arguments_of_log, main_of_log
    from compilescope.change.minify.logged_program import OwnProgram
    from compilescope.change.minify.logged_repros import write_log_repros

    program = None
    words = program_of(script).words if script is not None else ()
    if not words and asked and folders:
        main = main_of_log(run, folders, only_there=True)
        words = (main, *arguments_of_log(run, main)) if main else ()
    if words:
        plain = is_for_a_device or names_device(words[0])
        program = OwnProgram(os.path.abspath(words[0]), words[1:], is_for_a_device, plain)
    with ended_in_order(pausing=True), working("logs", "writing repro scripts") as work:
        made = write_log_repros(path, work.show, program, folders)
    if program is not None and made.own:
        count = f"{made.own} repros" if made.own > 1 else "1 repro"
        _say(f"Wrote {count} with the model of {os.path.relpath(program.script)}.")
    named = main_of_log(run, folders) if asked and program is None else ""
    if named:
        shown = os.path.relpath(named)
        _say(f"The log names {shown}. To use its model, add: --script {shlex.quote(shown)}")
    if asked:
        _list("Stock example only", [f"{place}: {why}" for place, why in made.stock])
        _list("No repro", [f"{place}: {why}" for place, why in made.missing])


def program_of(script: str) -> Target:
    """A file, or a file with its arguments: `"train.py --steps 1"`."""
    from compilescope.instrument.recorder.target import Target

    if not script.strip():
        raise ToolError("--script is empty.", hint="Name the program: --script train.py.")
    words: tuple[str, ...] = (script,)
    if not os.path.exists(script):
        try:
            words = tuple(shlex.split(script)) or words
        except ValueError:
            raise ToolError(f"The quotes in --script {script!r} do not match.") from None
    return Target("script", words)


def names_device(script: str) -> bool:
    """Does the script name a device that may not be here?"""
    try:
        with open(script, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
        return any(name in text for name in ("cuda", "xla", "tt_torch"))
    except OSError:
        return False


def _tell(made: LoggedScript) -> None:
    if made.path is None:
        _say(f"No script was written: {made.reason}.")
    else:
        _say(f"Wrote {os.path.relpath(made.path)}. To run it: {made.command}")
        if made.proof is not None and made.proof.verdict != "verified":
            _say(f"The script ran, but is not verified by itself: {made.proof.reason}.")
    _list(f"Verified {made.where}", made.done)
    if made.reason and made.path is not None:
        _say(f"The program could not be run here: {made.reason}.")
        if " error: " in made.reason:
            _say("If it needs arguments: --script 'FILE ARGS'.")
    _list("Unverified", [_once(text) for text in made.unverified])
    if made.unverified and made.reason:
        words = shlex.join(shlex.split(made.command)[1:])
        _say(f"To verify it where it runs: compilescope fix --script {words}")
    _list("To do by hand", made.left)


def _once(text: str) -> str:
    """The line's title says it already."""
    return (
        text.replace(" Unverified: ", " (", 1).rstrip(".") + ")"
        if " Unverified: " in text
        else text
    )


def _list(title: str, items: Any) -> None:
    for item in items[:_MOST_LISTED]:
        _say(f"{title}: {item}")
    if len(items) > _MOST_LISTED:
        _say(f"{title}: {len(items) - _MOST_LISTED} more, listed in --json.")


def _say(text: str) -> None:
    print(text, file=sys.stderr)
