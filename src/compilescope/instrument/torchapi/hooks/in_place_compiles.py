"""`Module.compile()` of a module that torch itself wrote: Dynamo skips its forward, silently.

Seen in torch 2.13: `torch.compile(nn.Sequential(...))` puts a function of its own around such a
module and captures it; compiled in place there is none, so only the user's modules within it are.
"""

from __future__ import annotations

from typing import Any

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.instrument.torchapi.stacks import callers, code_ref
from compilescope.record.bodies import FrameSkipped
from compilescope.record.stack import CodeRef, innermost_user_frame


def _record(watch: Watch, call: HookedCall) -> None:
    module = call["self"]
    forward: Any = getattr(type(module).forward, "__code__", None)
    if forward is None or "forward" in vars(module) or not _is_skipped(forward):
        return
    name = type(module).__name__
    reason = (
        f"Dynamo skips the forward of `{name}`, PyTorch's own, when it is compiled in place; "
        "use `model = torch.compile(model)`"
    )
    stack = callers()
    at = innermost_user_frame(stack)
    # The line that compiles it is the one to change; its forward is torch's.
    where = code_ref(forward) if at is None else CodeRef(at.file, at.line, name)
    watch.sink.emit(FrameSkipped(where, "torch-module", reason), stack)


def _is_skipped(code: Any) -> bool:
    from torch._dynamo import trace_rules

    return bool(trace_rules.check(code))


HOOK = Hook(
    id="in-place-compiles",
    module="torch.nn.modules.module",
    target="Module.compile",
    loses="modules of torch.nn that `Module.compile()` leaves in eager mode",
    after=_record,
)
