"""Lines that need a number itself: as a symbol of the graph it would be a constant there again."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.patch import NeedsRun, Refused
from compilescope.fixes.source.guarded import cause_of
from compilescope.fixes.source.liveness import targets
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.source.parameters import recompiled_function
from compilescope.fixes.source.purity import short
from compilescope.fixes.subject import Subject

_NEEDING = {"builtins.range", "builtins.str", "builtins.format", "builtins.divmod"}


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
            needing = module.meaning(above.func) & _NEEDING
            return above if needing else None
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
