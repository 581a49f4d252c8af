"""A dict or set with different keys."""

from __future__ import annotations

import re

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import called, cut, shown

_KEYS = re.compile(r"^(?P<dict>.+)\.keys\(\)(?:\[\d+\])?$")
_ALL_KEYS = re.compile(r"^list\((?P<dict>.+)\.keys\(\)\)$")
_CONTAINS = re.compile(r"^(?P<no>not )?___dict_contains\((?P<key>.+), (?P<dict>[^,]+)\)$")
_IN_SET = re.compile(r"^(?P<no>not )?set\.__contains__\((?P<dict>[^,]+), (?P<key>.+)\)$")
_MISSING = re.compile(r"^KeyError on (?P<dict>.+)\[(?P<key>'[^']*'|\d+)\]$")


def _match(miss: RecompileCase) -> re.Match[str] | None:
    guard, subject = miss.finding.guard, miss.finding.subject
    return (
        _CONTAINS.match(guard)
        or _IN_SET.match(guard)
        or _MISSING.match(guard)
        or _ALL_KEYS.match(subject)
        or _KEYS.match(subject)
    )


def _applies(miss: RecompileCase) -> bool:
    return _match(miss) is not None


def _name(miss: RecompileCase) -> str:
    match = _match(miss)
    return shown(match["dict"]) if match else shown(miss.finding.subject)


def _why(miss: RecompileCase) -> str:
    match, name = _match(miss), _name(miss)
    if match is None:
        return f"The keys of `{name}` have changed."
    if match.re is _ALL_KEYS:
        change = f"they were {cut(miss.finding.expected)}"
    elif match.re is _KEYS:
        change = f"the key {cut(miss.finding.expected)} was where {cut(miss.finding.actual)} is now"
    elif match.re is _MISSING:
        change = f"it had the key {match['key']}, which it lacks now"
    else:
        change = f"it {'lacked' if match['no'] else 'had'} {match['key']}, which it {'has' if match['no'] else 'lacks'} now"
    return (
        f"When `{called(miss)}` was compiled, `{name}` had other keys: {change}. Keys and their "
        "order are part of the graph; tensor values are not."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    match, name = _match(miss), _name(miss)
    few = leave(miss, "set of keys")
    if match is not None and match.re is _IN_SET:
        return [few]
    return [
        source(
            f"Build `{name}` with the same keys in the same order for every call, with a neutral "
            "value for missing entries, or pass its tensors as separate arguments."
        ),
        few,
    ]


RULE = GuardRule(
    id="key-change",
    order=360,
    needs=("keys()", "contains", "KeyError"),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
