"""A run of a script that breaks at one expression, made without torch."""

from __future__ import annotations

import socket
from pathlib import Path

from builders import event, run_of
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import Body, GraphBreak, SourceSeen
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame, origin_of

PRINT = GraphBreak(
    gb_type="Failed to trace builtin operator",
    gb_id="GB0059",
    context="print [<constant>] {}",
    explanation="Dynamo does not know how to trace builtin operator `print` with argument types.",
)
"""As torch 2.13 tells it."""
BRANCH = GraphBreak(
    gb_type="Data-dependent branching",
    gb_id="GB0170",
    context="attempted to jump with TensorVariable()",
    explanation="Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`).",
)


def broken_run(
    root: Path,
    file: Path,
    text: str,
    expression: str,
    *more: Body,
    body: GraphBreak = PRINT,
    kept: bool = True,
) -> Run:
    """Of the script `file`, whose function `f` breaks at `expression`. `kept`: the run holds the
    text; else it is read from the file."""
    lines = text.split("\n")
    line = next(number for number, each in enumerate(lines, 1) if expression in each)
    source = lines[line - 1].rstrip("\r")
    column = source.index(expression)
    at = Frame(
        file=str(file),
        line=line,
        function="f",
        column=column,
        end_column=column + len(expression),
        source=source,
        origin=origin_of(str(file)),
    )
    start = next(number for number, each in enumerate(lines, 1) if each.startswith("def f("))
    code = CodeRef(str(file), start, "f")
    said = {name: getattr(body, name) for name in body.__struct_fields__}
    broke = GraphBreak(**{**said, "frame": code, "outcome": "resumed"})
    artifacts = MemoryArtifacts()
    # As Python reads a file's lines, and so as capture keeps them.
    text = text.replace("\r\n", "\n").removesuffix("\n") + "\n"
    seen = SourceSeen(str(file), artifacts.put(text, "py"))
    run = run_of(
        event(broke, stack=(at,)),
        *([event(seen)] if kept else []),
        *(event(each) for each in more),
        root=str(root),
        cwd=str(root),
        command=(file.name,),
        host=socket.gethostname(),
    )
    return Run(run.header, run.events, artifacts)
