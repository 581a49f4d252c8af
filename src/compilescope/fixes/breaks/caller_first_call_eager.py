"""What happens only in the first call happens eagerly, and the second call is compiled."""

from __future__ import annotations

from compilescope.fixes.compilation.settings import eager_then_compile
from compilescope.fixes.compilation.switches import FIRST_CALL_CATEGORIES, runs_once
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.model.bodies import GraphBreak
from compilescope.model.storms import compilation_number
from compilescope.source.refusals import NotMeant


def _propose(subject: Subject) -> Patch:
    runs_once(subject)
    if not _is_of_first_call(subject):
        raise NotMeant("it happens in a later call, not in the function's first call")
    return eager_then_compile(subject)


def _is_of_first_call(subject: Subject) -> bool:
    """Was it seen in the first compilation of its function?"""
    events = subject.program.run.events_with(subject.finding.because)
    ids = [e.compile_id for e in events if isinstance(e.body, GraphBreak) and e.compile_id]
    return not ids or any(compilation_number(each) == 0 for each in ids)


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
