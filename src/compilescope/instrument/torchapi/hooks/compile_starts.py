"""The start of every compilation: calls under way then are warm-up, not steady state."""

from __future__ import annotations

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch


def _record(watch: Watch, call: HookedCall) -> None:
    if watch.timing is not None:
        watch.timing.note_compilation()
    if watch.profiler is not None:
        watch.profiler.note_compilation()


HOOK = Hook(
    id="compile-starts",
    module="torch._dynamo.metrics_context",
    target="MetricsContext.__enter__",
    loses="the boundary between warm-up and steady state in timed and profiled runs",
    before=_record,
    only_with="steady",
)
