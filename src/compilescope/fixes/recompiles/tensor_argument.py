"""A number that is passed becomes a tensor, whose value is not part of the graph."""

from __future__ import annotations

from compilescope.fixes.arguments.calls import CallSite
from compilescope.fixes.arguments.edits import wrap_argument
from compilescope.fixes.arguments.guarded import cause_of, recompiled_function, uses_of
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.fixes.values.extraction import decides
from compilescope.source.flow.purity import short
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.trees import cst


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    whole = all(text.lstrip("-").isdigit() for text in (cause.expected, cause.actual))
    if not whole and not all(_is_number(text) for text in (cause.expected, cause.actual)):
        raise NotMeant(f"`{cause.subject}` is not a number")
    _check_uses(subject, cause.subject)
    dtype = "" if whole else ", dtype=torch.float64"

    def wrap(site: CallSite, now: str) -> str:
        node = cst.parse_expression(now)
        if isinstance(node, cst.Call) and site.module.code(node.func).endswith(
            ("tensor", "as_tensor")
        ):
            return now
        torch = site.module.name_of_module("torch") or "torch"
        return f"{torch}.tensor({now}{dtype.replace('torch', torch)})"

    files = wrap_argument(subject, cause.subject, wrap)
    return Patch(files, states=f"`{cause.subject}` is a tensor inside `{cause.function}`.")


def _check_uses(subject: Subject, name: str) -> None:
    """Raises `Refused` where the function does more with it than arithmetic."""
    module, function = recompiled_function(subject)
    for read in uses_of(module, function, name):
        above = module.parent(read)
        test = decides(module, read)
        if test is not None:
            raise Refused(f"Python control flow depends on it in `{short(module, test)}`")
        if not isinstance(above, (cst.BinaryOperation, cst.AugAssign)):
            raise Refused(f"`{short(module, above or read)}` needs a number")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


FIX = Fix(
    id="tensor-argument",
    title="pass the number as a tensor",
    rules=frozenset(
        {
            "recompile/float-change",
            "recompile/int-change",
            "recompile/number-condition",
            "recompile/number-needed",
        }
    ),
    order=140,
    kind="source",
    why="A zero-dimensional tensor behaves like a Python number in arithmetic: it does not "
    "widen float32. It is float64, like a Python float, so no digit is lost.",
    propose=_propose,
)
