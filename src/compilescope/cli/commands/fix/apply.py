"""`fix --apply RUN`: the fix of an earlier search, put into the user's files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from compilescope.cli.options import home_folder, print_json
from compilescope.cli.output import tell
from compilescope.cli.program import Words
from compilescope.errors import ToolError
from compilescope.report.fix_search import FixSearchView, fixing_document, in_counts

if TYPE_CHECKING:
    from compilescope.fixes.stored import StoredFix
    from compilescope.repair.delivery.stored_fix import AppliedFix
    from compilescope.report.blocks import Style

_OTHERS = {
    "write": "--write",
    "script": "--script",
    "run": "--run",
    "repertoire": "--list",
    "site": "--site",
    "rules": "--rule",
}


def apply_run(words: Words, given: dict[str, Any]) -> None:
    from compilescope.fixes.stored import stored_fix
    from compilescope.model.home import find_run
    from compilescope.model.run import read_run
    from compilescope.repair.delivery.stored_fix import apply_stored, check_origin

    _check(words, given)
    stored = find_run(home_folder(given["home"]), given["stored"])
    run = read_run(stored)
    fix = stored_fix(run)
    if fix is None:
        raise ToolError(
            f"Run {run.header.run} holds no fix to apply.",
            hint=f"Search for one with `compilescope fix --run {shlex.quote(run.header.run)}`.",
        )
    check_origin(fix, stored, run.header.run)
    # Git takes the way back only from within its tree.
    folder = "" if os.path.realpath(fix.root) == os.getcwd() else fix.root
    done = apply_stored(fix, force=given["force"], folder=folder)
    if given["as_json"]:
        print_json(_value(run.header.run, fix, done))
        return
    diff = fix.diff if done.written else ""
    document = fixing_document(
        FixSearchView(
            title="compilescope fix",
            subtitle=" ".join(run.header.command),
            headline=tuple(_headline(fix, done)),
            diff=diff,
            notes=done.remarks,
            next=(("To undo:", done.undo),) if done.undo else (),
        )
    )
    tell(document, "")


def _check(words: Words, given: dict[str, Any]) -> None:
    if words[1]:
        raise ToolError("Give a program or --apply RUN, not both.")
    for name, flag in _OTHERS.items():
        if given[name]:
            raise ToolError(f"Use --apply or {flag}, not both.")


def _headline(fix: StoredFix, done: AppliedFix) -> Iterator[tuple[str, Style]]:
    if done.already:
        yield "This fix is already applied.", "good"
    elif done.written:
        yield f"Changed: {', '.join(map(os.path.relpath, done.written))}.", "good"
    else:
        yield "This fix changes no file.", "good"
    yield f"Verified: {in_counts(fix.outcome.before, fix.outcome.after)}.", "plain"


def _value(run: str, fix: StoredFix, done: AppliedFix) -> dict[str, Any]:
    return {
        "run": run,
        "written": done.written,
        "already": done.already,
        "diff": fix.diff,
        "environment": fix.outcome.environment,
        "undo": done.undo or None,
        "notes": done.remarks,
    }
