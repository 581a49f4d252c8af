"""Each start of torch's profiler: the program's own takes precedence over ours."""

from __future__ import annotations

from compilescope.torchapi.hook import Hook, HookedCall, Watch


def _record(watch: Watch, call: HookedCall) -> None:
    if watch.profiler is not None:
        watch.profiler.give_way()


HOOK = Hook(
    id="own-profilers",
    module="torch.autograd.profiler",
    target="profile._prepare_trace",
    loses="whether the program profiles itself while its steps are profiled",
    before=_record,
    only_with="profile",
)
