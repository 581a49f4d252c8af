"""What cannot be compiled stays in its function; what stands around it is compiled in parts."""

from __future__ import annotations

from compilescope.change.fixes.arguments.callers import Callers
from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.compilation.paths import LOST_ON_A_WAY, Step, also_lost, way_to
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.marks import compiling, leave_alone, leaving, marked
from compilescope.change.fixes.statements.parts import FunctionParts
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.analysis.line_costs import captured_lines
from compilescope.knowledge.source.refusals import NotMeant
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    steps = way_to(subject)
    edits: dict[str, Edit] = {}
    moved = compiling(steps[0].module, steps[0].function)
    for place, step in enumerate(steps):
        edit = edits.setdefault(step.module.path, Edit(step.module))
        last = place == len(steps) - 1
        if last and place and not _computes_elsewhere(subject, step):
            leave_alone(edit, step.function)
            continue
        if not step.is_in_body:
            raise NotMeant("it is unknown which line it is about")
        lines = step.lines | also_lost(subject, step)
        mark, decorators = None, compiling(step.module, step.function)
        if not decorators:
            mark = leaving(edit, step.function, outermost=not place)
        # No longer called from what is compiled, its parts are compiled as those further out are.
        handed = moved if place and step.module is steps[0].module and not decorators else []
        parts = FunctionParts(edit, step.function, lines, aside=last and step.leaves_own)
        try:
            parts.write(None if handed else mark, handed)
        except NotMeant:
            if place and last:
                leave_alone(edit, step.function)
                continue
            if last or mark is None:
                raise
            edit.replace(step.function, marked(step.function, mark))
    files = {path: text for each in edits.values() for path, text in each.files().items()}
    names = [_name_of(step) for step in steps]
    shown = f"{', '.join(names[:-1])} and {names[-1]} do" if names[1:] else f"{names[0]} does"
    alone = "themselves run" if names[1:] else "itself runs"
    states = f"What {shown} by {alone} eagerly."
    return Patch(files, states=states, allows=frozenset({"compiles-less"}))


def _computes_elsewhere(subject: Subject, step: Step) -> bool:
    """Does it also call what operators were captured of, such as the model? To leave all of that to
    Python is no gain."""
    lines = captured_lines(subject.program.run)
    callers = Callers(own_modules(subject.program))
    lost = step.lines | also_lost(subject, step)
    for call in step.module.walk(step.function.body):
        if not isinstance(call, cst.Call) or step.module.line(call) in lost:
            continue
        for module, function in callers.called(step.module, call):
            first, end = module.line(function), module.position(function).end.line
            if any(first <= line <= end for line in lines.get(module.path, ())):
                return True
    return False


def _name_of(step: Step) -> str:
    owner = step.module.class_of(step.function)
    name = step.function.name.value
    return f"`{owner.name.value}.{name}`" if owner is not None else f"`{name}`"


FIX = Fix(
    id="compile-parts",
    title="compile the parts around it, each by itself",
    rules=LOST_ON_A_WAY,
    order=150,
    kind="source",
    why="The function does the same in the same order. Dynamo leaves its own frame alone, and "
    "compiles the functions that it calls: those with what stood around the line.",
    propose=_propose,
    placement="the parts",
    observable=True,
    only_run_tells=True,
)
