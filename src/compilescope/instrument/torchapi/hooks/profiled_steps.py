"""What the step profiler has to see: regions, the program's own profiler, Inductor's fusions."""

from __future__ import annotations

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch


def _watch_region(watch: Watch, call: HookedCall) -> None:
    """Each `torch.compile` as it is made, so that calls of its code can be counted."""
    if watch.profiler is not None:
        watch.profiler.watch_region(call["self"])


def _give_way(watch: Watch, call: HookedCall) -> None:
    """Each start of torch's profiler: the program's own takes precedence over ours."""
    if watch.profiler is not None:
        watch.profiler.give_way()


def _note_fused(watch: Watch, call: HookedCall) -> None:
    """The nodes that Inductor's scheduler has fused, as it begins to generate their code."""
    if watch.profiler is not None:
        watch.profiler.fusions.settle(call["self"].nodes)


def _note_refused(watch: Watch, call: HookedCall) -> None:
    """Each time that Inductor's scheduler says why it does not fuse two nodes."""
    if watch.profiler is not None:
        why, words, *values = call.args
        reason = words % tuple(values) if values else words
        watch.profiler.fusions.refuse(why.name1, why.name2, reason)


HOOKS = (
    Hook(
        id="profiled-regions",
        module="torch._dynamo.eval_frame",
        target="_TorchDynamoContext.__init__",
        loses="profiled steps",
        after=_watch_region,
        only_with="profile",
    ),
    Hook(
        id="own-profilers",
        module="torch.autograd.profiler",
        target="profile._prepare_trace",
        loses="whether the program profiles itself while its steps are profiled",
        before=_give_way,
        only_with="profile",
    ),
    Hook(
        id="fused-nodes",
        module="torch._inductor.scheduler",
        target="Scheduler.codegen",
        loses="which kernels were not fused, in profiled runs",
        before=_note_fused,
        only_with="profile",
    ),
    Hook(
        id="refused-fusions",
        module="torch._inductor.scheduler",
        target="WhyNoFuse.__call__",
        loses="why kernels were not fused, in profiled runs",
        before=_note_refused,
        only_with="profile",
        logs=True,
    ),
)
