"""A number that is passed becomes a tensor, whose value is not part of the graph."""

from __future__ import annotations

from compilescope.change.fixes.arguments.calls import CallSite
from compilescope.change.fixes.arguments.edits import CallEdits, wrap_argument
from compilescope.change.fixes.arguments.guarded import cause_of, compiled_parameter
from compilescope.change.fixes.arguments.number_uses import NumberUses, is_float_text
from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant
from compilescope.knowledge.source.trees import cst


def _exact(subject: Subject) -> Patch:
    return _propose(subject, rounded=False)


def _rounded(subject: Subject) -> Patch:
    return _propose(subject, rounded=True)


def _propose(subject: Subject, *, rounded: bool) -> Patch:
    cause = cause_of(subject)
    whole = all(text.lstrip("-").isdigit() for text in (cause.expected, cause.actual))
    if not whole and not all(is_float_text(text) for text in (cause.expected, cause.actual)):
        raise NotMeant(f"`{cause.subject}` is not a number")
    module, function, name = compiled_parameter(subject)
    edits = CallEdits(subject)
    always = (
        isinstance(function, cst.FunctionDef)
        and module.class_of(function) is None
        and edits.covers(function, own_modules(subject.program))
    )
    uses = NumberUses(edits, always_tensor=always)
    uses.follow(module, function, name)
    dtype = "" if whole else uses.dtype(subject)
    if rounded and not dtype:
        raise NotMeant("it has the default dtype anyway")
    if dtype and not rounded:
        uses.check_not_widened(subject)
    dtype = "" if rounded else dtype

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
    states = f"`{name}` is a tensor inside `{called}`"
    return Patch(
        files, states=f"{states}, rounded to the default dtype." if rounded else f"{states}."
    )


_RULES = frozenset(
    {
        "recompile/float-change",
        "recompile/int-change",
        "recompile/number-condition",
        "recompile/number-needed",
    }
)

FIXES = (
    Fix(
        id="tensor-argument",
        title="pass the number as a tensor",
        rules=_RULES,
        order=140,
        kind="source",
        why="A zero-dimensional tensor behaves like a Python number in arithmetic: it does not "
        "widen float32. Where the function computes with the number before a tensor comes in, it "
        "is float64, like a Python float, so no digit is lost; else it has the dtype to which "
        "torch converts a number too. What takes a number alone, as `alpha=1 - m`, becomes a "
        "product.",
        propose=_exact,
    ),
    Fix(
        id="tensor-argument-rounded",
        title="pass the number as a tensor of the default dtype",
        rules=_RULES,
        order=144,
        kind="source",
        why="Beside a tensor without dimensions, such as a loss, a float64 one would widen the "
        "result. In the default dtype it does not; what the function computes with the number "
        "before a tensor comes in is then rounded to it, which verification compares.",
        propose=_rounded,
    ),
)
