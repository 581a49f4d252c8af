"""The search of `fix` and what it hands out: in the working folder, or in a copy of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from compilescope.cli.commands.fix.delivery import Handed, hand_out
from compilescope.cli.isolation import Copy, announce, isolated
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.cli.commands.fix.options import FixOptions
    from compilescope.repair.delivery.emitter import ScriptPlan
    from compilescope.repair.search.outcome import SearchResult

Check = Callable[["SearchResult", "FixOptions"], None]


def searched(asked: FixOptions, check: Check, *, isolated: bool) -> tuple[SearchResult, Handed]:
    """`check` raises where there is nothing to hand out."""
    from compilescope.repair.search.rounds import search

    if isolated:
        return _in_a_copy(asked, check)
    announce("fix")
    outcome = search(asked.target, asked.wishes)
    check(outcome, asked)
    return outcome, hand_out(asked, outcome)


def _in_a_copy(asked: FixOptions, check: Check) -> tuple[SearchResult, Handed]:
    from compilescope.repair.search.rounds import search

    home = asked.wishes.home
    assert home is not None
    script = asked.target.words[0] if asked.target.kind == "script" else ""
    with isolated(home, script) as copy:
        announce("fix", copy)
        inner = _inner(asked, copy)
        found = search(inner.target, inner.wishes)
        if found.run:
            copy.rename_in(home / found.run)
        outcome = copy.back(found)
        check(outcome, asked)
        handed = Handed()
        if asked.plan is not None:
            handed = _taken_out(hand_out(inner, found), asked.plan, copy)
    return outcome, hand_out(asked, outcome) if asked.write else handed


def _inner(asked: FixOptions, copy: Copy) -> FixOptions:
    """The same request, in the copy."""
    from compilescope.repair.delivery.emitter import plan_script

    target = replace(asked.target, words=tuple(map(copy.into, asked.target.words)))
    plan = None
    if asked.plan is not None:
        output = copy.into(os.path.join(copy.real, asked.plan.output))
        if not os.path.abspath(output).startswith(copy.folder + os.sep):
            raise ToolError(f"With --isolated, {asked.plan.output} must be in the working folder.")
        plan = plan_script(target, Path(os.path.relpath(output)))
    return replace(asked, target=target, main=copy.into(asked.main), plan=plan, write=False)


def _taken_out(handed: Handed, plan: ScriptPlan, copy: Copy) -> Handed:
    """The script, verified in the copy, in its real place."""
    from compilescope.outputs import write_output

    if handed.script is None:
        return copy.back(handed)
    data = copy.bytes_back(Path(handed.script).read_bytes())
    output = Path(copy.real, plan.output)
    write_output(output, data)
    output.chmod(os.stat(handed.script).st_mode & 0o777)
    return replace(copy.back(handed), script=str(output), command=plan.command)
