"""What cannot be compiled stays in its function; what stands around it is compiled in parts."""

from __future__ import annotations

from compilescope.change.fixes.compilation.paths import LOST_ON_A_WAY, Step, also_lost, way_to
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.marks import compiling, leave_alone, leaving, marked
from compilescope.change.fixes.statements.parts import FunctionParts
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant
from compilescope.knowledge.source.syntax.edit import Edit


def _propose(subject: Subject) -> Patch:
    steps = way_to(subject)
    edits: dict[str, Edit] = {}
    for place, step in enumerate(steps):
        edit = edits.setdefault(step.module.path, Edit(step.module))
        last = place == len(steps) - 1
        if last and place:
            leave_alone(edit, step.function)
            continue
        if not step.is_in_body:
            raise NotMeant("it is unknown which line it is about")
        lines = step.lines | also_lost(subject, step)
        mark = None
        if not compiling(step.module, step.function):
            mark = leaving(edit, step.function, outermost=not place)
        try:
            FunctionParts(edit, step.function, lines, aside=last and step.leaves_own).write(mark)
        except NotMeant:
            if last or mark is None:
                raise
            edit.replace(step.function, marked(step.function, mark))
    files = {path: text for each in edits.values() for path, text in each.files().items()}
    names = [_name_of(step) for step in steps]
    shown = f"{', '.join(names[:-1])} and {names[-1]} do" if names[1:] else f"{names[0]} does"
    alone = "themselves run" if names[1:] else "itself runs"
    states = f"What {shown} by {alone} eagerly."
    return Patch(files, states=states, allows=frozenset({"compiles-less"}))


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
