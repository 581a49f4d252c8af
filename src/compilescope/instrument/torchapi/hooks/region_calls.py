"""Counts the calls of each compiled region."""

from __future__ import annotations

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch


def _count(watch: Watch, call: HookedCall) -> None:
    """Each `torch.compile` as it is made."""
    if watch.counts is not None:
        watch.counts.count(call["self"])


HOOK = Hook(
    id="region-calls",
    module="torch._dynamo.eval_frame",
    target="OptimizeContext.__init__",
    loses="whether compiling came to an end",
    after=_count,
)
