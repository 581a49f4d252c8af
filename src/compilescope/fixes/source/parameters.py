"""What a recompiled function does with one of its parameters."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from compilescope.fixes.patch import NeedsRun, Refused
from compilescope.fixes.source.aliasing import changes_in_place
from compilescope.fixes.source.liveness import reads
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.source.passing import function_at
from compilescope.fixes.source.purity import short
from compilescope.fixes.subject import Subject


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
