"""A number that is passed becomes a tensor, whose value is not part of the graph."""

from __future__ import annotations

from compilescope.fixes.arguments.calls import CallSite
from compilescope.fixes.arguments.edits import CallEdits, wrap_argument
from compilescope.fixes.arguments.guarded import cause_of, compiled_parameter
from compilescope.fixes.arguments.number_uses import NumberUses
from compilescope.fixes.compilation.own_files import own_modules
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.source.refusals import NotMeant
from compilescope.source.trees import cst


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    whole = all(text.lstrip("-").isdigit() for text in (cause.expected, cause.actual))
    if not whole and not all(_is_number(text) for text in (cause.expected, cause.actual)):
        raise NotMeant(f"`{cause.subject}` is not a number")
    module, function, name = compiled_parameter(subject)
    edits = CallEdits(subject)
    always = (
        isinstance(function, cst.FunctionDef)
        and module.class_of(function) is None
        and edits.covers(function, own_modules(subject.program))
    )
    NumberUses(edits, always_tensor=always).follow(module, function, name)
    dtype = "" if whole else ", dtype=torch.float64"

    def wrap(site: CallSite, now: str) -> str:
        node = cst.parse_expression(now)
        if isinstance(node, cst.Call) and site.module.code(node.func).endswith(
            ("tensor", "as_tensor")
        ):
            return now
        torch = site.module.name_of_module("torch") or "torch"
        return f"{torch}.tensor({now}{dtype.replace('torch', torch)})"

    called = function.name.value if isinstance(function, cst.FunctionDef) else cause.function
    files = wrap_argument(subject, cause.subject, wrap, edits)
    return Patch(files, states=f"`{name}` is a tensor inside `{called}`.")


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
