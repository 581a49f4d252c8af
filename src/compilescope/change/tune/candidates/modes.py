"""`mode=` of torch.compile."""

from __future__ import annotations

from collections.abc import Callable

from compilescope.change.fixes.compilation.settings import set_argument
from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.knobs import MODE, set_knob, set_variable
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit


def _with_mode(mode: str) -> Callable[[TunedProgram], Patch]:
    def propose(tuned: TunedProgram) -> Patch:
        if mode == "reduce-overhead":
            tuned.needs_cuda("CUDA graphs need")
        if mode == "max-autotune-no-cudagraphs" and not tuned.facts.on_cuda:
            raise Refused("on the CPU there are no CUDA graphs: it is max-autotune")
        value = f'"{mode}"'
        files: dict[str, str] = {}
        if tuned.is_compiled_elsewhere:
            files = set_knob(tuned, MODE, value) or set_variable(tuned, "mode", mode)
        given = ("options",)
        return Patch(files or with_compile_argument(tuned, "mode", value, refused_with=given))

    return propose


def with_compile_argument(
    tuned: TunedProgram, name: str, value: str, refused_with: tuple[str, ...] = ()
) -> dict[str, str]:
    """New texts in which every torch.compile that uses Inductor gets the argument."""
    edits: dict[str, Edit] = {}
    for region in tuned.inductor_regions():
        for other in refused_with:
            if region.argument(other) is not None:
                raise Refused(f"torch.compile already gets {other}=, which excludes {name}=")
        known = region.argument(name)
        if known is not None and region.module.code(known.value).replace("'", '"') == value:
            continue
        edit = edits.setdefault(region.module.path, Edit(region.module))
        set_argument(edit, region, name, value)
    if not edits:
        raise Refused(f"{name}={value} is already set")
    return {path: text for edit in edits.values() for path, text in edit.files().items()}


CANDIDATES = (
    TuneCandidate(
        id="reduce-overhead",
        title='mode="reduce-overhead": CUDA graphs',
        price="Memory for a pool of CUDA graphs; outputs are overwritten by the next step.",
        propose=_with_mode("reduce-overhead"),
        order=10,
        helps="launches",
        group="mode",
    ),
    TuneCandidate(
        id="max-autotune-no-cudagraphs",
        title='mode="max-autotune-no-cudagraphs": kernels chosen by measuring them',
        price="Compiling takes much longer, once for each machine and version of torch.",
        propose=_with_mode("max-autotune-no-cudagraphs"),
        order=80,
        autotunes=True,
        group="mode",
    ),
    TuneCandidate(
        id="max-autotune",
        title='mode="max-autotune": kernels chosen by measuring them, and CUDA graphs',
        price="Compiling takes much longer; memory for a pool of CUDA graphs.",
        propose=_with_mode("max-autotune"),
        order=85,
        autotunes=True,
        group="mode",
    ),
)
