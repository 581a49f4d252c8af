"""The search of `fix` and what it hands out, in the working folder or in a copy of it; or the fix
of an earlier search (`--apply RUN`), put into the user's files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilescope.apps.cli.commands.fix.delivery import Delivery, deliver
from compilescope.apps.cli.isolation import Copy, announce, isolated
from compilescope.apps.cli.options import home_folder, print_json
from compilescope.apps.cli.output import tell
from compilescope.apps.cli.program import Words
from compilescope.base.errors import ToolError
from compilescope.record.fix_search import in_counts
from compilescope.report.fix_search import FixSearchView, fixing_document

if TYPE_CHECKING:
    from compilescope.apps.cli.commands.fix.options import FixRequest
    from compilescope.change.fixes.stored import StoredFix
    from compilescope.change.repair.delivery.emitter import ScriptPlan
    from compilescope.change.repair.delivery.stored_fix import AppliedFix
    from compilescope.change.repair.search.outcome import SearchResult
    from compilescope.report.blocks import Style


Check = Callable[["SearchResult", "FixRequest"], None]


def searched(request: FixRequest, check: Check, *, isolated: bool) -> tuple[SearchResult, Delivery]:
    """`check` raises where there is nothing to hand out."""
    from compilescope.change.repair.search.rounds import search

    if isolated:
        return _in_a_copy(request, check)
    announce("fix")
    outcome = search(request.target, request.options)
    check(outcome, request)
    return outcome, deliver(request, outcome)


def _in_a_copy(request: FixRequest, check: Check) -> tuple[SearchResult, Delivery]:
    from compilescope.change.repair.search.rounds import search

    home = request.options.home
    assert home is not None
    script = request.target.words[0] if request.target.kind == "script" else ""
    with isolated(home, script) as copy:
        announce("fix", copy)
        inner = _inner(request, copy)
        found = search(inner.target, inner.options)
        if found.run:
            copy.rename_in(home / found.run)
        outcome = copy.back(found)
        check(outcome, request)
        delivery = Delivery()
        if request.plan is not None:
            delivery = _taken_out(deliver(inner, found), request.plan, copy)
    return outcome, deliver(request, outcome) if request.write else delivery


def _inner(request: FixRequest, copy: Copy) -> FixRequest:
    """The same request, in the copy."""
    from compilescope.change.repair.delivery.emitter import plan_script

    target = replace(request.target, words=tuple(map(copy.into, request.target.words)))
    plan = None
    if request.plan is not None:
        output = copy.into(os.path.join(copy.real, request.plan.output))
        if not os.path.abspath(output).startswith(copy.folder + os.sep):
            raise ToolError(
                f"With --isolated, {request.plan.output} must be in the working folder."
            )
        plan = plan_script(target, Path(os.path.relpath(output)))
    return replace(request, target=target, main=copy.into(request.main), plan=plan, write=False)


def _taken_out(delivery: Delivery, plan: ScriptPlan, copy: Copy) -> Delivery:
    """The script, verified in the copy, in its real place."""
    from compilescope.base.outputs import write_output

    if delivery.script is None:
        return copy.back(delivery)
    data = copy.bytes_back(Path(delivery.script).read_bytes())
    output = Path(copy.real, plan.output)
    write_output(output, data)
    output.chmod(os.stat(delivery.script).st_mode & 0o777)
    return replace(copy.back(delivery), script=str(output), command=plan.command)


_OTHERS = {
    "write": "--write",
    "script": "--script",
    "run": "--run",
    "repertoire": "--list",
    "site": "--site",
    "rules": "--rule",
    "llm": "--llm",
    "llm_dry_run": "--llm-dry-run",
}


def apply_run(words: Words, given: dict[str, Any]) -> None:
    from compilescope.change.repair.delivery.stored_fix import apply_stored, read_own_fix
    from compilescope.record.header import read_header
    from compilescope.record.home import find_run

    _check(words, given)
    stored = find_run(home_folder(given["home"]), given["stored"])
    run, fix = read_own_fix(stored)
    # Git takes the way back only from within its tree.
    folder = "" if os.path.realpath(fix.root) == os.getcwd() else fix.root
    done = apply_stored(fix, force=given["force"], folder=folder)
    if given["as_json"]:
        print_json(_value(run, fix, done))
        return
    diff = fix.diff if done.written else ""
    document = fixing_document(
        FixSearchView(
            title="compilescope fix",
            subtitle=" ".join(read_header(stored).command),
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
