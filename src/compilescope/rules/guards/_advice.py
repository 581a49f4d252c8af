"""Words that several rules give."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Miss
from compilescope.rules.guards._subjects import called


def one_module(miss: Miss) -> Remedy:
    """For instances that differ by design and share one compiled function."""
    return source(
        f"If it differs between instances, compile the module that holds them all, without graph breaks, instead of each `{called(miss)}`: "
        "every instance is then traced in its own place."
    )


def leave(miss: Miss, each: str) -> Remedy:
    """For values that are few; `each` follows "once for each"."""
    return judgement(
        f"If they are few, leave it: `{called(miss)}` is compiled once for each {each}, up to the recompile limit, and can be called with "
        "each during warm-up."
    )


def varies_by_itself(name: str, but: str = "") -> Remedy:
    """For numbers and sizes, which Dynamo lets vary once they have."""
    return judgement(
        f"Leave it where nothing needs the number itself: once Dynamo has seen a second `{name}` it lets it vary{but}, unless "
        "`dynamic=False` forbids that."
    )


def each_way(name: str, test: str) -> Remedy:
    """For numbers that a branch compares."""
    return judgement(
        f"Leave it where nothing else needs the number itself: once `{name}` varies there is one compilation for each way through "
        f"`{test}`, not one for each value."
    )
