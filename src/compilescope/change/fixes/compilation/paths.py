"""The way from the function that the user compiles to where something of it is lost: the functions
of the user's own on it, outermost first, and the lines at which each goes on."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import Toll
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.bodies import CompileFailed, GraphBreak, GraphCaptured, Recompile
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame

_CAUSES = (
    "attribute-presence",
    "bool-change",
    "broken-value",
    "closure-change",
    "constant-change",
    "default-argument",
    "float-change",
    "function-change",
    "global-change",
    "int-change",
    "key-change",
    "layer-index",
    "length-change",
    "module-flag",
    "module-number",
    "none-or-value",
    "number-condition",
    "number-needed",
    "object-gone",
    "object-identity",
    "optimizer-setting",
    "other-change",
    "string-change",
    "tensor-read",
    "type-change",
)
"""Of recompiles: what Python code reads, and no graph needs. Sizes, modes and dtypes are the
tensors' own, and come back wherever a part begins."""
_FEW_STATES = frozenset(
    f"recompile/{each}"
    for each in ("attribute-presence", "bool-change", "module-flag", "none-or-value")
)
"""Of these: what has few states, each of which takes one graph, however often it changes. To run a
part eagerly in every call costs more."""
LOST_ON_A_WAY = frozenset({"break", "failure"} | {f"recompile/{each}" for each in _CAUSES})
"""What a change of what is compiled may win back."""


class Step(msgspec.Struct):
    """A function on the way."""

    module: SourceModule
    function: cst.FunctionDef
    lines: set[int]
    """Where it calls the next one; in the last one, where it is lost."""
    leaves_own: bool = False
    """What it calls there is a library's."""

    @property
    def is_in_body(self) -> bool:
        """Is it known where in the function it goes on?"""
        return any(line > self.module.line(self.function.name) for line in self.lines)


def way_to(subject: Subject) -> list[Step]:
    """The same for all events of the finding. Raises `Refused` where that cannot be told."""
    finding = subject.finding
    if finding.toll is not Toll.EAGER and _FEW_STATES & subject.keys:
        raise Refused("each state takes one graph, however often it changes")
    compiled = _compiled(subject.program.run)
    found: list[Step] = []
    for event in subject.program.run.events_with(finding.because):
        frames = _frames(subject, event, compiled)
        if not frames:
            continue
        steps = list(_steps(subject, frames))
        for place, step in enumerate(steps):
            if place == len(found):
                found.append(step)
            elif found[place].function is step.function:
                found[place].lines |= step.lines
                found[place].leaves_own |= step.leaves_own
            else:
                raise Refused("it is reached on several ways")
    if not found:
        raise NotMeant("it is unknown which function was being compiled")
    return found


def _compiled(run: Run) -> set[tuple[str, str]]:
    """The functions that were compiled by themselves, or should have been."""
    found: set[tuple[str, str]] = set()
    for kind in (GraphCaptured, GraphBreak, CompileFailed, Recompile):
        frames = (getattr(body, "frame", None) for _, body in run.of(kind))
        found |= {_key(code) for code in frames if code is not None}
    return found


def _key(code: CodeRef) -> tuple[str, str]:
    return code.file, code.function


def _frames(subject: Subject, event: Event, compiled: set[tuple[str, str]]) -> list[Frame]:
    """The user's frames from the compiled function on, and the place that the finding names."""
    finding = subject.finding
    frames = [each for each in event.stack if each.origin in ("user", "library")]
    start = next(
        (place for place, each in enumerate(frames) if (each.file, each.function) in compiled), None
    )
    inner = frames[start:] if start is not None else []
    code = getattr(event.body, "frame", None)
    if code is not None and all(_key(code) != (each.file, each.function) for each in inner):
        # A recompile begins before the function runs: its stack ends at the call.
        inner.append(Frame(code.file, code.line, code.function))
    if inner and finding.file and (inner[-1].file, inner[-1].line) != (finding.file, finding.line):
        inner.append(Frame(finding.file, finding.line, finding.function))
    return inner


def _steps(subject: Subject, frames: list[Frame]) -> Iterator[Step]:
    program = subject.program
    own = [each for each in frames if program.is_own(each.file)]
    last: Step | None = None
    for place, frame in enumerate(own):
        module = program.module(frame.file)
        statement = module.statement_at(frame.line)
        function = module.function_of(statement) if statement is not None else None
        if isinstance(statement, cst.FunctionDef):
            function = statement  # The line is that of its head.
        if function is None:
            continue
        if last is not None and last.function is not function and not last.is_in_body:
            last.lines |= _calls_of(last, function)
        leaves = place == len(own) - 1 and frames[-1] is not frame
        if last is not None and last.function is function:
            last.lines.add(frame.line)
            last.leaves_own |= leaves
            continue
        if last is not None:
            yield last
        last = Step(module, function, {frame.line}, leaves)
    if last is not None:
        yield last


def _calls_of(step: Step, function: cst.FunctionDef) -> set[int]:
    """Lines of a function that call another one by its name."""
    found: set[int] = set()
    for node in step.module.walk(step.function.body):
        if isinstance(node, cst.Call):
            named = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
            if isinstance(named, cst.Name) and named.value == function.name.value:
                found.add(step.module.line(node))
    return found


def also_lost(subject: Subject, step: Step) -> set[int]:
    """Other lines of the function that break its graph."""
    place = step.module.position(step.function)
    found = subject.program.digest
    return {
        each.line
        for each in (*found.sites, *found.failures)
        if isinstance(each, (BreakFinding, FailureFinding))
        and each.file == step.module.path
        and place.start.line < each.line <= place.end.line
        and step.module.function_of(step.module.statement_at(each.line) or step.function)
        is step.function
    }
