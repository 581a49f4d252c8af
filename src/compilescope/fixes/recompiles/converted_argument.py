"""An argument that comes as two types is converted to one of them at the call."""

from __future__ import annotations

import re

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NeedsRun, Patch, Refused
from compilescope.fixes.source.arguments import operand, wrap_argument
from compilescope.fixes.source.calling import CallSite
from compilescope.fixes.source.graph_values import graph_values
from compilescope.fixes.source.guarded import cause_of
from compilescope.fixes.source.parameters import recompiled_function, uses_of
from compilescope.fixes.source.purity import short
from compilescope.fixes.subject import Subject

_TYPE = re.compile(r"^type\((.+)\)$")
_ASKING = {"builtins.isinstance", "builtins.type", "torch.is_tensor"}
_ITEM = (cst.Subscript, cst.For, cst.CompFor, cst.StarredElement)
_SAFE: dict[str, tuple[type[cst.CSTNode], ...]] = {
    "list({})": _ITEM,
    "float({})": (cst.BinaryOperation,),
    "torch.as_tensor({})": (cst.BinaryOperation,),
    "{}.long()": (cst.Index,),
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
        return now if now.startswith(call.split("{")[0]) and "{}." not in call else new

    return Patch(wrap_argument(subject, value, wrap))


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
    examples=(
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def total(xs):
    return sum(xs) * 2


x = torch.ones(3)
total([x, x])
total((x, x))
""",
            good="""import torch


@torch.compile(backend="eager")
def total(xs):
    return sum(xs) * 2


x = torch.ones(3)
total(list([x, x]))
total(list((x, x)))
""",
        ),
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def look_up(table, ids):
    return table[ids]


table = torch.ones(5, 3)
look_up(table, torch.tensor([1, 2]))
look_up(table, torch.tensor([1, 2], dtype=torch.int32))
""",
            good="""import torch


@torch.compile(backend="eager")
def look_up(table, ids):
    return table[ids]


table = torch.ones(5, 3)
look_up(table, torch.tensor([1, 2]).long())
look_up(table, torch.tensor([1, 2], dtype=torch.int32).long())
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


@torch.compile(backend="eager")
def total(xs):
    return xs[0] * (2 if isinstance(xs, list) else 3)


total([torch.ones(3)])
total((torch.ones(3),))
""",
            because="distinguishes the types",
        ),
        RefusalExample(
            program="""import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


f(torch.ones(3))
f(torch.ones(3, dtype=torch.float64))
""",
            because="different numbers",
        ),
    ),
)
