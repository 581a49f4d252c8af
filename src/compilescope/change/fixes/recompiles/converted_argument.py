"""An argument that comes as two types is converted to one of them at the call."""

from __future__ import annotations

import re

from compilescope.change.fixes.arguments.calls import CallSite
from compilescope.change.fixes.arguments.edits import operand, wrap_argument
from compilescope.change.fixes.arguments.guarded import cause_of, recompiled_function, uses_of
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.graph_values import graph_values
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NeedsRun, Refused
from compilescope.knowledge.source.trees import cst, kinds

_TYPE = re.compile(r"^type\((.+)\)$")
_ASKING = {"builtins.isinstance", "builtins.type", "torch.is_tensor"}
_ITEM = kinds(lambda: (cst.Subscript, cst.For, cst.CompFor, cst.StarredElement))
_SAFE: dict[str, tuple[type[cst.CSTNode], ...]] = {
    "list({})": _ITEM,
    "float({})": kinds(lambda: (cst.BinaryOperation,)),
    "torch.as_tensor({})": kinds(lambda: (cst.BinaryOperation,)),
    "{}.long()": kinds(lambda: (cst.Index,)),
}
_WHOLE = {"torch.int8", "torch.int16", "torch.int32", "torch.int64", "torch.uint8"}
_TENSOR = {"torch.Tensor", "Tensor", "torch.nn.parameter.Parameter"}


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    types = {cause.expected.removeprefix("builtins."), cause.actual.removeprefix("builtins.")}
    match = _TYPE.match(cause.subject)
    if match is not None:
        value = match[1]
        call = _call_for(types)
    else:
        value, found, _ = cause.subject.partition(".dtype")
        if not found or not types <= _WHOLE:
            raise Refused("another dtype would give different numbers")
        call = "{}.long()"

    _check_uses(subject, value, call)

    def wrap(_: CallSite, now: str) -> str:
        new = call.format(operand(now) if call.startswith("{}.") else now)
        if call == "list({})":
            new = _as_list(now) or new
        return now if now.startswith(call.split("{")[0]) and "{}." not in call else new

    return Patch(wrap_argument(subject, value, wrap))


def _as_list(code: str) -> str:
    """A list or a tuple that is written out, as a list; empty for any other value."""
    node = cst.parse_expression(code)
    if isinstance(node, (cst.List, cst.ListComp)):
        return code
    if not isinstance(node, cst.Tuple):
        return ""
    return cst.Module([]).code_for_node(cst.List(node.elements))


def _check_uses(subject: Subject, value: str, call: str) -> None:
    """Raises `Refused` where the function does something with the value that tells its types apart."""
    module, function = recompiled_function(subject)
    for read in uses_of(module, function, value):
        above = module.parent(read)
        outer = module.parent(above) if above is not None else None
        shown = short(module, outer if isinstance(above, cst.Arg) and outer else above or read)
        if isinstance(above, cst.Arg) and isinstance(outer, cst.Call):
            if module.meaning(outer.func) & _ASKING:
                raise Refused(f"`{shown}` distinguishes the types")
            safe = call != "float({})"
        else:
            safe = isinstance(above, _SAFE[call])
        if not safe and not subject.program.facts.seen:
            raise NeedsRun(f"it is unknown whether `{shown}` does the same with another type")
    if call == "float({})" and _has_whole_tensors(subject):
        raise NeedsRun("with integer tensors, a float gives another dtype")


def _has_whole_tensors(subject: Subject) -> bool:
    dtypes = graph_values(subject.program.run).dtypes
    return not subject.program.facts.seen and any("int" in dtype for dtype in dtypes)


def _call_for(types: set[str]) -> str:
    if types <= {"list", "tuple"}:
        return "list({})"
    if types & _TENSOR and types - _TENSOR <= {"int", "float", "bool"}:
        return "torch.as_tensor({})"
    if types == {"int", "float"}:
        return "float({})"
    raise Refused(f"{' and '.join(sorted(types))} cannot replace one another")


FIX = Fix(
    id="converted-argument",
    title="convert the argument to one type",
    rules=frozenset({"recompile/type-change", "recompile/dtype-change"}),
    order=80,
    kind="source",
    why="A list holds the same items as the tuple, a float is equal to the int, an int64 index "
    "to the int32 one. If the function distinguishes the two types, verification shows it.",
    propose=_propose,
)
