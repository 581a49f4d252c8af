"""The nodes that Inductor's scheduler has fused, as it begins to generate their code."""

from __future__ import annotations

from compilescope.torchapi.hook import Hook, HookedCall, Watch


def _record(watch: Watch, call: HookedCall) -> None:
    if watch.profiler is not None:
        watch.profiler.fusions.settle(call["self"].nodes)


HOOK = Hook(
    id="fused-nodes",
    module="torch._inductor.scheduler",
    target="Scheduler.codegen",
    loses="which kernels were not fused, in profiled runs",
    before=_record,
    only_with="profile",
)
