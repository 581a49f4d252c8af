"""`dynamic=` of torch.compile."""

from __future__ import annotations

from collections.abc import Callable

from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.candidates.modes import with_compile_argument
from compilescope.knowledge.source.refusals import Refused


def _with_dynamic(value: str) -> Callable[[TunedProgram], Patch]:
    def propose(tuned: TunedProgram) -> Patch:
        if not tuned.program.digest.recompiles:
            raise Refused("nothing is compiled again: every step has the same sizes")
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
