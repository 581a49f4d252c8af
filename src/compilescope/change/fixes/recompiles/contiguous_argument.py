"""A tensor is passed in one layout, whatever it came in."""

from __future__ import annotations

from compilescope.change.fixes.arguments.edits import operand, wrap_argument
from compilescope.change.fixes.arguments.guarded import cause_of, check_only_read
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant


def _propose(subject: Subject) -> Patch:
    tensor, found, _ = cause_of(subject).subject.partition(".stride()[")
    if not found:
        raise NotMeant("it is not one stride of one tensor")
    check_only_read(subject, tensor)
    return Patch(
        wrap_argument(
            subject,
            tensor,
            lambda _, now: now if now.endswith(".contiguous()") else f"{operand(now)}.contiguous()",
        )
    )


FIX = Fix(
    id="contiguous-argument",
    title="pass a contiguous tensor",
    rules=frozenset({"recompile/stride-change"}),
    order=70,
    kind="source",
    why="`contiguous()` only copies a tensor with another layout. If the function changes it "
    "in place, the caller would not see that, and verification rejects the fix.",
    propose=_propose,
)
