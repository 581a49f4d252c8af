"""The request to `tune`: which program, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compilescope.cli.options import home_folder
from compilescope.cli.program import Words
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.recorder.target import Target
    from compilescope.repair.delivery.emitter import ScriptPlan
    from compilescope.tune.options import TuneOptions


@dataclass(frozen=True)
class TuneRequest:
    """A request that makes sense."""

    target: Target
    options: TuneOptions
    main: str
    write: bool
    force: bool
    plan: ScriptPlan | None
    everything: bool = False


def read_request(words: Words, given: dict[str, Any]) -> TuneRequest:
    """Raises `ToolError` for all that can be known to fail before anything runs."""
    from compilescope.cli.commands.fix.options import check_source, check_writing
    from compilescope.processes.deadline import Deadline, command_begun
    from compilescope.recorder.names import resolve_names
    from compilescope.recorder.target import Target
    from compilescope.repair.delivery.emitter import plan_script
    from compilescope.repair.search.budget import read_budget
    from compilescope.repair.search.places import main_file
    from compilescope.tune.options import TuneOptions

    check_writing(given)
    kind, rest = words
    if kind not in ("script", "module", "code"):
        raise ToolError("tune takes a script, -m MODULE or -c CODE.")
    if not rest:
        raise ToolError(
            "No program given.", hint="Try `compilescope tune script.py`, or -m MODULE."
        )
    budget_s = read_budget(given["budget"]) if given["budget"] else None
    target = Target(kind, rest)  # type: ignore[arg-type]
    target.check()
    main = main_file(target)
    check_source(target, main)
    names = resolve_names(given["compile_names"], target)
    options = TuneOptions(
        step=given["step"],
        only=frozenset(given["only"]),
        lower_precision=given["lower_precision"],
        limit_s=given["limit"],
        budget_s=budget_s,
        deadline=Deadline(budget_s, begun=command_begun()),
        compile_names=("*", *names) if given["compile_all"] else names,
        backend=given["backend"],
        jobs=given["jobs"],
        home=home_folder(given["home"]).absolute(),
    )
    options.check()
    plan = plan_script(target, given["output"]) if given["script"] else None
    if plan is not None:
        plan.check(force=given["force"])
    return TuneRequest(
        target, options, main, given["write"], given["force"], plan, given["everything"]
    )
