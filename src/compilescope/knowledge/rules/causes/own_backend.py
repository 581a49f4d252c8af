"""A backend that is a function of the user's, and raised: where, and at which line's operator."""

from __future__ import annotations

import ast
import os

from compilescope.base.patterns import late
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import is_own
from compilescope.knowledge.source.outline import Function, Outline, dotted
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import SourceSeen

_QUOTED = late(r"['\"`](?:aten[.:]+)?([A-Za-z_]\w*)(?:\.\w+)?['\"`]")
_MOST_FILES = 20
"""Of the user's that are looked at. Chosen."""


def own_backend(failure: FailureFinding, sources: Sources) -> str:
    """What to do; empty where the backend is none of the user's files."""
    name = failure.backend or ""
    if not name.isidentifier():
        return ""
    found = [
        (file, outline, function)
        for file, outline in _own_outlines(sources)
        for function in outline.functions_called(name)
    ]
    if len(found) != 1:
        return ""
    file, outline, backend = found[0]
    error = (failure.cause or failure.text).partition(":")[0].strip().rpartition(".")[2]
    line = _raise_line(outline, backend, error) or backend.node.lineno
    place = f"{os.path.basename(file)}:{line}"
    said = failure.cause or failure.text
    operator = next((each for each in _QUOTED.findall(said) if each != name), "")
    user = _line_with(failure, operator, sources) if operator else ""
    if operator:
        cure = f"let it take the operator `{operator}` there"
        cure += f", or write {user} without it" if user else ", or do without that operator"
    else:
        cure = "fix it there, or change what it cannot take"
    return f"Your own backend `{name}` raised this, at {place}: {cure}."


def _own_outlines(sources: Sources) -> list[tuple[str, Outline]]:
    files = dict.fromkeys(body.file for _, body in sources.run.of(SourceSeen))
    own = [each for each in files if is_own(each) and sources.has(each)][:_MOST_FILES]
    outlines = [(each, sources.outline(each)) for each in own]
    return [(file, outline) for file, outline in outlines if outline is not None]


def _raise_line(outline: Outline, backend: Function, error: str) -> int | None:
    """Of the only `raise` of that error in the backend, or in what it calls in its file."""
    called = {dotted(node.func) for node in backend.own_nodes if isinstance(node, ast.Call)}
    around = [backend, *(each for each in outline.functions if each.name in called)]
    lines = [
        node.lineno
        for function in around
        for node in function.own_nodes
        if isinstance(node, ast.Raise) and node.exc is not None and _class_of(node.exc) == error
    ]
    return lines[0] if len(lines) == 1 else None


def _class_of(node: ast.expr) -> str:
    raised = node.func if isinstance(node, ast.Call) else node
    return dotted(raised).rpartition(".")[2]


def _line_with(failure: FailureFinding, operator: str, sources: Sources) -> str:
    """The first line of the compiled function that calls it, between backticks."""
    outline = sources.outline(failure.file)
    function = outline.function_at(failure.line, failure.function) if outline is not None else None
    if function is None:
        return ""
    for node in function.own_nodes:
        if isinstance(node, ast.Call) and _name_of(node.func) == operator:
            text = " ".join(ast.unparse(node).split()).replace("`", "'")
            return f"`{text}` (line {node.lineno})"
    return ""


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else dotted(node)
