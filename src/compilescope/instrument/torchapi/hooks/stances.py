"""`torch.compiler.set_stance`: what runs under force_eager is seen by no other hook."""

from __future__ import annotations

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.record.bodies import StanceChanged


def _record(watch: Watch, call: HookedCall) -> None:
    stance = call["stance"]
    watch.sink.emit(StanceChanged(str(getattr(stance, "stance", stance))))


HOOK = Hook(
    id="stances",
    module="torch._dynamo.eval_frame",
    target="_set_stance",
    loses="sections that ran under another stance, such as force_eager",
    after=_record,
    everywhere=True,
)
