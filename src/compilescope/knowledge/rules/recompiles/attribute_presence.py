"""An object has an attribute in one call and lacks it in another."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import called, reader, shown

_HAS = late(r"^(?P<no>not )?hasattr\((?P<object>.+), '(?P<name>\w+)'\)")
_FAILED = late(r"^getattr failed on source (?P<object>.+)$")
_KINDS = ("NO_HASATTR", "HASATTR", "NOT_PRESENT_IN_GENERIC_DICT", "ACCESSOR")


def _applies(miss: RecompileCase) -> bool:
    has = _HAS.match(miss.finding.guard) or _FAILED.match(miss.finding.guard)
    return miss.finding.guard_kind in _KINDS or has is not None


def _parts(miss: RecompileCase) -> tuple[str, str]:
    """(object, attribute), the attribute empty where torch does not name it"""
    match = _HAS.match(miss.finding.guard)
    if match:
        return shown(match["object"]), match["name"]
    failed = _FAILED.match(miss.finding.guard)
    if failed:
        return shown(failed["object"]), ""
    owner, dot, name = miss.finding.subject.rpartition(".")
    return (shown(owner), name) if dot else (shown(miss.finding.subject), "")


def _why(miss: RecompileCase) -> str:
    owner, name = _parts(miss)
    what = f"attribute `{name}`" if name else "an attribute that the code reads"
    match = _HAS.match(miss.finding.guard)
    change = "had no" if match and match["no"] else "had the"
    now = "has it" if match and match["no"] else "lacks it"
    if not name:
        change, now = "had", "lacks it"
    return (
        f"When `{called(miss)}` was compiled, `{owner}` {change} {what}; now it {now}. "
        f"{reader(miss)} depends on it, so each case has its own graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    owner, name = _parts(miss)
    return [
        source(
            f"Give every `{owner}` the attribute{f' `{name}`' if name else ''} from the start, "
            "with a neutral value as the default, and don't add or delete it between calls."
        ),
        leave(miss, "of the two cases"),
    ]


RULE = GuardRule(
    id="attribute-presence",
    order=370,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
