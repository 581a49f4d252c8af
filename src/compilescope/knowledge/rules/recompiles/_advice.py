"""Remedies that several rules about recompiles share, so that they use the same words."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, cut


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


def number_varies(miss: RecompileCase, name: str, test: str = "", but: str = "") -> list[Remedy]:
    """For Python numbers, and what became of them after the second value; `test` is a branch that
    compares them."""
    again = miss.finding
    if again.compiled_in:
        return [
            source(
                f"Pass `{name}` as a 0-d tensor that the caller makes (`torch.tensor(...)`), whose "
                "value is not part of the graph; where an operator takes a number alone, such as "
                "`alpha=`, multiply instead. Or do that arithmetic outside of "
                f"`{called(miss)}`."
            ),
            leave(miss, f"`{name}`"),
        ]
    if test:
        return [each_way(name, test)]
    if again.fixed_again:
        return [
            source(
                f"Pass `{name}` as a 0-d tensor that the caller makes, whose value is not part of "
                "the graph: as a Python number it stayed a constant after it had changed."
            ),
            leave(miss, f"`{name}`"),
        ]
    return [varies_by_itself(name, but)]


def then(miss: RecompileCase, name: str) -> str:
    """What Dynamo did after the second value."""
    fixed = miss.finding.compiled_in
    if not fixed:
        return ""
    return (
        f"Then Dynamo made `{name}` dynamic, but an operator takes an expression of it as a Python "
        f"number, which was compiled in (`{cut(fixed)}`): each value has its own graph."
    )


def each_way(name: str, test: str) -> Remedy:
    """For numbers that a branch compares."""
    return judgement(
        f"Leave it if nothing else needs the number itself: once `{name}` is dynamic, there is one "
        f"compilation for each branch of `{test}`, not one for each value."
    )
