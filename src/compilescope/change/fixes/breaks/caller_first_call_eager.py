"""What happens only in the first call happens eagerly, and the second call is compiled."""

from __future__ import annotations

from compilescope.change.fixes.compilation.settings import eager_then_compile
from compilescope.change.fixes.compilation.switches import FIRST_CALL_CATEGORIES, runs_once
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant
from compilescope.knowledge.source.trees import cst
from compilescope.record.bodies import GraphBreak
from compilescope.record.storms import compilation_number


def _propose(subject: Subject) -> Patch:
    runs_once(subject)
    if not _is_of_first_call(subject):
        raise NotMeant("it happens in a later call, not in the function's first call")
    if not subject.program.facts.seen and _calls_itself(subject):
        # The stance counts the calls of each function, and compiles its second one.
        raise NeedsRun("the function calls itself, so its second call may be within the first")
    return eager_then_compile(subject)


def _is_of_first_call(subject: Subject) -> bool:
    """Was it seen in the first compilation of its function?"""
    events = subject.program.run.events_with(subject.finding.because)
    ids = [e.compile_id for e in events if isinstance(e.body, GraphBreak) and e.compile_id]
    return not ids or any(compilation_number(each) == 0 for each in ids)


def _calls_itself(subject: Subject) -> bool:
    function = subject.function
    calls = (node for node in subject.module.walk(function.body) if isinstance(node, cst.Call))
    return any(_callee(call) == function.name.value for call in calls)


def _callee(call: cst.Call) -> str:
    """`install` of `install(x)` and of `self.install(x)`."""
    func = call.func
    return func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")


FIX = Fix(
    id="compile-second-call",
    title="run the first call eagerly",
    rules=FIRST_CALL_CATEGORIES,
    order=130,
    kind="caller",
    why="With the stance `eager_then_compile`, each function is compiled on its second call. "
    "Whatever a library sets up on the first call (hooks, caches, a warning) is done by "
    "then.",
    propose=_propose,
)
