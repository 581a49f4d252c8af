"""Each `torch.compile` as it is made, so that the step profiler can count the calls of its code."""

from __future__ import annotations

from compilescope.torchapi.hook import Hook, HookedCall, Watch


def _record(watch: Watch, call: HookedCall) -> None:
    if watch.profiler is not None:
        watch.profiler.watch_region(call["self"])


HOOK = Hook(
    id="profiled-regions",
    module="torch._dynamo.eval_frame",
    target="_TorchDynamoContext.__init__",
    loses="profiled steps",
    after=_record,
    only_with="profile",
)
