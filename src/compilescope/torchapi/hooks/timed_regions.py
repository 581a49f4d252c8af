"""Each `torch.compile` as it is made, so that entering and leaving its code is timed."""

from __future__ import annotations

from compilescope.torchapi.hook import Hook, HookedCall, Watch


def _record(watch: Watch, call: HookedCall) -> None:
    if watch.timing is not None:
        watch.timing.time_region(call["self"])


HOOK = Hook(
    id="timed-regions",
    module="torch._dynamo.eval_frame",
    target="_TorchDynamoContext.__init__",
    loses="time in compiled regions",
    after=_record,
    only_with="time",
)
