"""The search of `fix` and what it hands out: in the working folder, or in a copy of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from compilescope.cli.commands.fix.delivery import Delivery, deliver
from compilescope.cli.isolation import Copy, announce, isolated
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.cli.commands.fix.options import FixRequest
    from compilescope.repair.delivery.emitter import ScriptPlan
    from compilescope.repair.search.outcome import SearchResult

Check = Callable[["SearchResult", "FixRequest"], None]


def searched(request: FixRequest, check: Check, *, isolated: bool) -> tuple[SearchResult, Delivery]:
    """`check` raises where there is nothing to hand out."""
    from compilescope.repair.search.rounds import search

    if isolated:
        return _in_a_copy(request, check)
    announce("fix")
    outcome = search(request.target, request.options)
    check(outcome, request)
    return outcome, deliver(request, outcome)


def _in_a_copy(request: FixRequest, check: Check) -> tuple[SearchResult, Delivery]:
    from compilescope.repair.search.rounds import search

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
    from compilescope.repair.delivery.emitter import plan_script

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
    from compilescope.outputs import write_output

    if delivery.script is None:
        return copy.back(delivery)
    data = copy.bytes_back(Path(delivery.script).read_bytes())
    output = Path(copy.real, plan.output)
    write_output(output, data)
    output.chmod(os.stat(delivery.script).st_mode & 0o777)
    return replace(copy.back(delivery), script=str(output), command=plan.command)
