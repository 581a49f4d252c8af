"""The guards of each cache entry, each with the user's stack that made Dynamo install it.

Two views are joined: Dynamo's Guard objects know the stack, the C++ tree knows what is checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.guards.checks import bare_nodes, tree_nodes
from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.instrument.torchapi.stacks import code_ref, frames_of
from compilescope.record.bodies import Guard, GuardSet
from compilescope.record.guards import without_comment
from compilescope.record.stack import Frame, innermost_user_frame
from compilescope.record.storms import MOST_KEPT, compilation_number, frame_number

_encode = msgspec.json.Encoder().encode


def _record(watch: Watch, call: HookedCall) -> None:
    manager: Any = call["self"].guard_manager
    compile_id = current_compile_id()
    frame = frame_number(compile_id)
    if watch.versions is not None:
        watch.versions.note_code(frame, call["builder"].f_code)
    code = code_ref(call["builder"].f_code)
    if compilation_number(compile_id) >= MOST_KEPT:
        # Guards of the same code come from the same lines.
        watch.guard_frames[manager] = watch.storm_frames.get(frame, {})
        kinds = Counter(_kinds(manager.root))
        body = GuardSet(kinds.total(), dict(kinds), "", code)
        watch.sink.emit(body, compile_id=compile_id, more=True)
        return
    stacks = _stacks(call["guards_out"])
    guards = list(_guards(manager.root, stacks))
    frames: dict[str, Frame] = {}
    for source, stack in stacks.items():
        line = innermost_user_frame(stack)
        if line is not None:
            frames[source] = line
    watch.guard_frames[manager] = watch.storm_frames[frame] = frames
    body = GuardSet(
        count=len(guards),
        kinds=dict(Counter(guard.kind for guard in guards)),
        artifact=watch.sink.artifact(_encode(guards).decode(), "guards"),
        frame=code,
    )
    watch.sink.emit(body, compile_id=compile_id, more=True)


def _kinds(root: Any) -> Iterator[str]:
    for node in bare_nodes(root):
        for leaf in node.get_leaf_guards():
            yield type(leaf).__name__
    for _ in getattr(root, "get_epilogue_lambda_guards", list)():
        yield "SHAPE"


def _stacks(guards: Any) -> dict[str, tuple[Frame, ...]]:
    """Source -> the stack that first guarded it."""
    stacks: dict[str, tuple[Frame, ...]] = {}
    seen: dict[int, tuple[Frame, ...]] = {}
    for guard in guards:
        name = guard.name() if callable(guard.name) else guard.name
        summary = guard.user_stack
        if not summary or name in stacks:
            continue
        # Guards of one traced line share one stack object.
        if id(summary) not in seen:
            seen[id(summary)] = tuple(frames_of(summary))
        stacks[name] = seen[id(summary)]
    return stacks


def _guards(root: Any, stacks: dict[str, tuple[Frame, ...]]) -> Any:
    for source, node in tree_nodes(root):
        for leaf in node.get_leaf_guards():
            checks = tuple(without_comment(part) for part in leaf.verbose_code_parts())
            yield Guard(source, type(leaf).__name__, checks, stacks.get(source, ()))
    for leaf in getattr(root, "get_epilogue_lambda_guards", list)():
        checks = tuple(without_comment(part) for part in leaf.verbose_code_parts())
        yield Guard("", "SHAPE", checks)


HOOK = Hook(
    id="guard-sets",
    module="torch._dynamo.guards",
    target="CheckFunctionManager.compile_check_fn",
    loses="guards, and the user's lines behind failed ones",
    after=_record,
)
