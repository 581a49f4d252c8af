"""Flags of Inductor and Dynamo: a row each, with when it can help."""

from __future__ import annotations

from collections.abc import Callable

from compilescope.change.fixes.compilation.settings import put_setting
from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.knowledge.source.refusals import Refused

Check = Callable[[TunedProgram], object]
_IMPORTS = {"_inductor": "import torch._inductor.config", "_dynamo": "import torch._dynamo"}


def set_flag(tuned: TunedProgram, setting: str) -> dict[str, str]:
    """New texts in which the script sets it: `_inductor.config.freezing = True`."""
    edit = tuned.main_edit()
    torch = edit.module_name("torch")
    put_setting(edit, f"{_IMPORTS[setting.partition('.')[0]]}\n{torch}.{setting}")
    return edit.files()


def _sets(setting: str, *checks: Check) -> Callable[[TunedProgram], Patch]:
    def propose(tuned: TunedProgram) -> Patch:
        tuned.needs_inductor()
        for check in checks:
            check(tuned)
        return Patch(set_flag(tuned, setting))

    return propose


def _on_cuda(tuned: TunedProgram) -> None:
    tuned.needs_cuda("the flag tunes Triton kernels, which need")


def _trains(tuned: TunedProgram) -> None:
    if not tuned.facts.trains:
        raise Refused("the step computes no gradients")


def _infers(tuned: TunedProgram) -> None:
    if tuned.facts.trains:
        raise Refused("the step trains, and freezing needs weights that stay")
    if tuned.facts.grad_enabled:
        raise Refused("the step does not run under torch.no_grad() or inference_mode()")


CANDIDATES = (
    TuneCandidate(
        id="cpp-wrapper",
        title="launch kernels from C++ (cpp_wrapper)",
        price="Compiling takes longer: a C++ compiler builds each graph's wrapper.",
        propose=_sets("_inductor.config.cpp_wrapper = True"),
        order=50,
        helps="launches",
    ),
    TuneCandidate(
        id="coordinate-descent",
        title="tune the launch of each kernel (coordinate_descent_tuning)",
        price="Compiling takes longer: each kernel is measured in several forms.",
        propose=_sets("_inductor.config.coordinate_descent_tuning = True", _on_cuda),
        order=70,
        autotunes=True,
    ),
    TuneCandidate(
        id="freezing",
        title="weights as constants of the graph (freezing)",
        price="Weights that change after compiling are not seen; memory for packed weights.",
        propose=_sets("_inductor.config.freezing = True", _infers),
        order=30,
        helps="compute",
    ),
    TuneCandidate(
        id="compiled-autograd",
        title="the whole backward pass as one graph (compiled_autograd)",
        price="The backward pass is traced again whenever it changes its shape.",
        propose=_sets("_dynamo.config.compiled_autograd = True", _trains),
        order=75,
    ),
)
