"""What a recompiled function does with one of its parameters.

A fix would make a changing number a symbol of the graph. Lines such as `range(n)` or `layers[n]`
need the number itself, which makes it a constant again; such a fix is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.fixes.arguments.guarded import cause_of
from compilescope.fixes.arguments.passed import function_at
from compilescope.fixes.subject import Subject
from compilescope.source.flow.aliasing import changes_in_place
from compilescope.source.flow.liveness import reads, targets
from compilescope.source.flow.purity import short
from compilescope.source.refusals import NeedsRun, Refused
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst


def recompiled_function(subject: Subject) -> tuple[SourceModule, cst.FunctionDef | cst.Lambda]:
    """Raises `Refused` where its source is not at hand."""
    frame = subject.frame
    if frame is None:
        raise Refused("the recompiled function is unknown")
    module = subject.program.module(frame.file)
    function = function_at(module, frame.line, frame.function)
    if function is None:
        raise Refused(f"the source of `{frame.function}` is not where it was")
    return module, function


def check_only_read(subject: Subject, value: str) -> None:
    """Raises `Refused` where the function changes it in place: its caller would not see that of a
    copy."""
    module, function = recompiled_function(subject)
    name = value.split(".")[0].split("[")[0]
    for where, changed in changes_in_place(module, function.body):
        if changed == name:
            raise Refused(f"the function changes it in place: `{short(module, where)}`")
    if subject.program.facts.seen:
        return
    for call in _handed_on(module, function, name):
        raise NeedsRun(f"`{short(module, call)}` may change it in place")


def _handed_on(
    module: SourceModule, function: cst.FunctionDef | cst.Lambda, name: str
) -> Iterator[cst.Call]:
    """To a function of the file's own that has in-place changes in it."""
    for read in uses_of(module, function, name):
        arg = module.parent(read)
        call = module.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Name):
            continue
        for node in module.tree.body:
            named = isinstance(node, cst.FunctionDef) and node.name.value == call.func.value
            if named and any(True for _ in changes_in_place(module, node)):
                yield call


def uses_of(
    module: SourceModule, function: cst.FunctionDef | cst.Lambda, name: str
) -> list[cst.Name]:
    """Where the function reads it."""
    return [each for each in reads(module, function.body) if each.value == name]


_NEEDING = ("builtins.range", "builtins.str", "builtins.format", "builtins.divmod")


def check_not_needed(subject: Subject) -> None:
    """Raises `Refused` where the function counts to it or picks a layer by it."""
    guarded = cause_of(subject).subject
    name = guarded.split("'")[1] if guarded.startswith("G['") else guarded
    module, function = recompiled_function(subject)
    for node in module.walk(function.body):
        if isinstance(node, (cst.Name, cst.Attribute)) and module.code(node) == name:
            where = _needs(module, node)
            if where is not None:
                raise Refused(f"`{short(module, where)}` needs the number itself")


def check_counted(subject: Subject) -> None:
    """A counter takes one compilation for all; what is set to a size or the like is compared with
    it again, and each way through may be compiled."""
    name = cause_of(subject).subject
    module, function = recompiled_function(subject)
    for node in () if subject.program.facts.seen else module.walk(function.body):
        if not isinstance(node, cst.Assign) or isinstance(node.value, cst.Integer):
            continue
        sets = any(module.code(each) == name for each in targets(node))
        if sets and name not in module.code(node.value):
            raise NeedsRun(f"`{short(module, node)}` may set it to a size")


def _needs(module: SourceModule, node: cst.CSTNode) -> cst.CSTNode | None:
    for above in module.ancestors(node):
        if isinstance(above, cst.Index):
            return _picks(module, above)
        if isinstance(above, cst.Call):
            return above if module.means(above.func, *_NEEDING) else None
        if isinstance(above, cst.FormattedStringExpression):
            return module.parent(above)
        if isinstance(above, cst.BaseStatement):
            return None
    return None


def _picks(module: SourceModule, index: cst.Index) -> cst.CSTNode | None:
    """`layers[n]`; `x[:, n]` is a tensor's own."""
    element = module.parent(index)
    whole = module.parent(element) if element is not None else None
    if isinstance(whole, cst.Subscript) and len(whole.slice) == 1:
        return whole
    return None
