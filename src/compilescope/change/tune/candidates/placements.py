"""Other ways to say what is compiled: the fixes that change nothing else, tried for their speed."""

from __future__ import annotations

from collections.abc import Callable

from compilescope.change.fixes.breaks import compile_modules, compile_parts, disable_helper
from compilescope.change.fixes.breaks.compile_modules import modules_instead
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch, merge
from compilescope.change.fixes.subject import subjects_of
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.candidates.optimizers import compiled_step
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.trees import cst


def _by(fix: Fix) -> Callable[[TunedProgram], Patch]:
    def propose(tuned: TunedProgram) -> Patch:
        program = tuned.program
        made: list[Patch] = []
        refusal: Refused | None = None
        for subject in subjects_of(program):
            if subject.keys & fix.rules:
                try:
                    made.append(fix.propose(subject.meant_for(fix.rules)))
                except Refused as reason:
                    refusal = reason
        if not made and fix is compile_modules.FIX:
            made += _of_functions(tuned)
        if not made and refusal is not None and tuned.is_compiled_elsewhere:
            raise Refused("a library compiles, and no call in your own files says what")
        if not made:
            raise refusal or Refused("nothing is lost in what is compiled")
        bases = {file: program.text(file) for patch in made for file in patch.files}
        files, kept = merge(bases, [patch.files for patch in made])
        return Patch(files, states=made[kept[0]].states, allows=made[0].allows)

    return propose


def _with_optimizer(tuned: TunedProgram) -> Patch:
    """What a step that is compiled as a whole has of it: both are compiled, each by itself."""
    modules = _by(compile_modules.FIX)(tuned)
    step = compiled_step(tuned.with_files(modules.files))
    files = {**modules.files, **step.files}
    return Patch(files, states=modules.states, allows=modules.allows)


def _of_functions(tuned: TunedProgram) -> list[Patch]:
    """Where nothing is lost: of a compiled function, as a step is, the modules that it calls."""
    found: list[Patch] = []
    for region in tuned.regions:
        function = region.target
        if isinstance(function, cst.FunctionDef) and function.name.value != "forward":
            try:
                found.append(modules_instead(tuned.program, region.module, function, {}))
            except NotMeant:
                continue
    return found


_PRICE = "What is not compiled runs eagerly, and nothing is fused across it."
CANDIDATES = (
    TuneCandidate(
        id="compile-modules-and-optimizer",
        title="compile the modules that a step calls, and the optimizer's step",
        price=f"{_PRICE} A learning rate that changes compiles the optimizer again.",
        propose=_with_optimizer,
        order=11,
        group="placement",
        placement="modules, optimizer",
    ),
    *(
        TuneCandidate(
            id=fix.id,
            title=fix.title,
            price=_PRICE,
            propose=_by(fix),
            order=order,
            group="placement",
            placement=fix.placement,
        )
        for order, fix in enumerate(
            (compile_modules.FIX, compile_parts.FIX, disable_helper.FIX), start=12
        )
    ),
)
