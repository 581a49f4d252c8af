"""`dynamic=` of torch.compile; the flags that it stands for where a framework compiles."""

from __future__ import annotations

from collections.abc import Callable

from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.candidates.flags import set_flag
from compilescope.change.tune.candidates.modes import with_compile_argument
from compilescope.change.tune.knobs import DYNAMIC, set_knob
from compilescope.knowledge.source.refusals import Refused

_FLAGS = {
    "True": "assume_static_by_default = False",
    "False": "automatic_dynamic_shapes = False",
}
"""What torch.compile sets where it is given that value (torch 2.11 to 2.13)."""


def _with_dynamic(value: str) -> Callable[[TunedProgram], Patch]:
    def propose(tuned: TunedProgram) -> Patch:
        if not tuned.program.digest.recompiles:
            raise Refused("nothing is compiled again: every step has the same sizes")
        if tuned.is_compiled_elsewhere:
            files = set_knob(tuned, DYNAMIC, value)
            return Patch(files or set_flag(tuned, f"_dynamo.config.{_FLAGS[value]}"))
        return Patch(with_compile_argument(tuned, "dynamic", value))

    return propose


CANDIDATES = (
    TuneCandidate(
        id="dynamic-shapes",
        title="dynamic=True: one graph for all sizes",
        price="Kernels for any size may be slower than kernels for one.",
        propose=_with_dynamic("True"),
        order=60,
        group="dynamic",
    ),
    TuneCandidate(
        id="static-shapes",
        title="dynamic=False: a graph for each size",
        price="Each new size is compiled by itself, up to the recompile limit.",
        propose=_with_dynamic("False"),
        order=61,
        group="dynamic",
    ),
)
