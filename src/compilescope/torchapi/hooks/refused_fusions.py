"""Each time that Inductor's scheduler says why it does not fuse two nodes."""

from __future__ import annotations

from compilescope.torchapi.hook import Hook, HookedCall, Watch


def _record(watch: Watch, call: HookedCall) -> None:
    if watch.profiler is not None:
        why, words, *values = call.args
        reason = words % tuple(values) if values else words
        watch.profiler.fusions.refuse(why.name1, why.name2, reason)


HOOK = Hook(
    id="refused-fusions",
    module="torch._inductor.scheduler",
    target="WhyNoFuse.__call__",
    loses="why kernels were not fused, in profiled runs",
    before=_record,
    only_with="profile",
    logs=True,
)
