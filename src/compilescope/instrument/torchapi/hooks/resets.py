"""`torch._dynamo.reset()` starts compile ids again at 0/0: later events belong to a new epoch."""

from __future__ import annotations

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch


def _record(watch: Watch, call: HookedCall) -> None:
    if watch.versions is not None:
        watch.versions.write()
    watch.sink.new_epoch()


HOOK = Hook(
    id="resets",
    module="torch._dynamo.utils",
    target="reset_frame_count",
    loses="which compilations came before and after torch._dynamo.reset()",
    after=_record,
    everywhere=True,
)
