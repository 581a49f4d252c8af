"""Is a line part of what is compiled? Dynamo forbids there what only a caller may do."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.source.applications import is_compile
from compilescope.fixes.source.graph_values import graph_values
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.subject import Subject
from compilescope.model.bodies import CompileTime, GraphBreak, GraphCaptured


def is_compiled(subject: Subject, module: SourceModule, node: cst.CSTNode) -> bool:
    """The function around it is given to torch.compile, or the run has traced it."""
    function = module.function_of(node)
    if function is None:
        return False
    if any(is_compile(module, each.decorator) for each in function.decorators):
        return True
    return any(
        file == module.path and name == function.name.value and _is_own_line(module, function, line)
        for file, name, line in _traced(subject)
    )


def _traced(subject: Subject) -> set[tuple[str, str, int]]:
    run = subject.program.run
    found = set(graph_values(run).traced)
    for event in run.events:
        body = event.body
        if isinstance(body, (GraphCaptured, GraphBreak, CompileTime)) and body.frame is not None:
            found.add((body.frame.file, body.frame.function, body.frame.line))
    return found


def _is_own_line(module: SourceModule, function: cst.FunctionDef, line: int) -> bool:
    """Of the function itself, not of one within; its head and its decorators are its own too."""
    first = min([module.line(function), *map(module.line, function.decorators)])
    if first <= line <= module.line(function.name):
        return True
    statement = module.statement_at(line)
    return statement is not None and module.function_of(statement) is function
