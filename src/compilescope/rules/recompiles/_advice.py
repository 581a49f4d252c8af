"""Remedies that several rules about recompiles share, so that they use the same words."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import RecompileCase
from compilescope.rules.recompiles._subjects import called


def one_module(miss: RecompileCase) -> Remedy:
    """For instances that differ by design and share one compiled function."""
    return source(
        "If it differs between instances, compile the module that holds them all, without graph "
        f"breaks, instead of each `{called(miss)}`. Every instance is then traced at its own call "
        "site."
    )


def leave(miss: RecompileCase, each: str) -> Remedy:
    """For values that are few; `each` follows "once for each"."""
    return judgement(
        f"Leave it if there are only a few: `{called(miss)}` is compiled once for each {each}, up "
        "to the recompile limit. You can call it with each during warm-up."
    )


def varies_by_itself(name: str, but: str = "") -> Remedy:
    """For numbers and sizes, which Dynamo lets vary once they have."""
    return judgement(
        f"Leave it if nothing needs the number itself: after a second value, Dynamo makes `{name}` "
        f"dynamic{but}, unless `dynamic=False` forbids that."
    )


def each_way(name: str, test: str) -> Remedy:
    """For numbers that a branch compares."""
    return judgement(
        f"Leave it if nothing else needs the number itself: once `{name}` is dynamic, there is one "
        f"compilation for each branch of `{test}`, not one for each value."
    )
