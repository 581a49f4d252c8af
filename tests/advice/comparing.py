"""Do two versions of a program give the same? By what they print, return and leave behind."""

from __future__ import annotations

from collections import Counter
from typing import Any

_RELATIVE, _ABSOLUTE = 1e-4, 1e-5
_HALF = 100.0
"""So many times more may numbers of a half type differ."""


def difference(old: dict[str, Any], new: dict[str, Any], *, other_numbers: bool = False) -> str:
    """Where the values that two runs kept part, in a few words; empty where they do not.

    `other_numbers`: of tensors only the kind and the sizes count."""
    calls, later = _by_region(old), _by_region(new)
    if len(calls) != len(later):
        return f"{len(calls)} calls of compiled regions are now {len(later)}"
    for number, (one, other) in enumerate(zip(calls, later, strict=True), 1):
        where = f"call {number}, of {one['region']}"
        if one.get("raises") != other.get("raises"):
            return f"{where}: raised {one.get('raises')}, raises {other.get('raises')}"
        other_run = other_numbers or "unsteady" in one
        found = _leaves(one.get("gives", {}), other.get("gives", {}), other_run)
        if found:
            return f"{where}: {found}"
    return names_difference(old, new, other_numbers=other_numbers)


def steady(values: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    """Without what is something else in another run of the very same program: times, addresses,
    the number of the process."""
    names = {
        name: held
        for name, held in values["names"].items()
        if name in again["names"] and not _leaves(held, again["names"][name], False)
    }
    calls = values["calls"]
    if len(calls) == len(again["calls"]):
        pairs = zip(_by_region(values), _by_region(again), strict=True)
        calls = [
            call
            if not _leaves(call.get("gives", {}), other.get("gives", {}), False)
            else {**call, "unsteady": True}
            for call, other in pairs
        ]
    return {"calls": calls, "names": names}


def _by_region(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each region in order: threads call theirs in any."""
    return sorted(values["calls"], key=lambda call: str(call["region"]))


def names_difference(
    old: dict[str, Any], new: dict[str, Any], *, other_numbers: bool = False
) -> str:
    """Only of what the program's names hold at its end."""
    for name, held in old["names"].items():
        if name not in new["names"]:
            return f"the name {name} is gone"
        # What a name holds may have got something more, a table that is kept for later.
        now = {path: leaf for path, leaf in new["names"][name].items() if path in held}
        found = _leaves(held, now, other_numbers)
        if found:
            return f"at the end {found}"
    return ""


def _leaves(old: dict[str, Any], new: dict[str, Any], other_numbers: bool) -> str:
    for path, leaf in old.items():
        if path not in new:
            return f"{path} is gone"
        if not _same(leaf, new[path], other_numbers):
            return f"{path} was {_short(leaf)} and is {_short(new[path])}"
    more = [path for path in new if path not in old]
    return f"{more[0]} is new" if more else ""


def _same(old: Any, new: Any, other_numbers: bool) -> bool:
    if old == new:
        return True
    if isinstance(old, dict) and isinstance(new, dict):
        if "numpy" in old and "numpy" in new:
            return _same(old["numpy"], new["numpy"], other_numbers)
        if "tensor" not in old or old.get("tensor") != new.get("tensor"):
            return False
        scale = _HALF if old["tensor"][0] in ("torch.float16", "torch.bfloat16") else 1.0
        pairs = zip(old["numbers"], new["numbers"], strict=True)
        return other_numbers or all(_near(one, other, scale) for one, other in pairs)
    if _is_number(old) and _is_number(new) and type(old) is type(new):
        return other_numbers or _near(old, new, 1.0)
    return False


def as_stated(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The values of `new`, with Python's number where a name of `old` holds one and that of `new` a
    tensor of it: for a fix that says so."""
    names = {}
    for name, held in new["names"].items():
        before = old["names"].get(name, {})
        names[name] = {
            path: leaf["numbers"][0]
            if _is_number(before.get(path)) and isinstance(leaf, dict) and _is_single(leaf)
            else leaf
            for path, leaf in held.items()
        }
    return {**new, "names": names}


def without_first_calls(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The values of `new`, without the calls that it has more than `old`: the first of each
    region, for a fix that prepares the program by such a call."""
    more = Counter(call["region"] for call in new["calls"])
    more.subtract(call["region"] for call in old["calls"])
    calls = []
    for call in new["calls"]:
        if more[call["region"]] > 0:
            more[call["region"]] -= 1
        else:
            calls.append(call)
    return {**new, "calls": calls}


def _is_single(leaf: dict[str, Any]) -> bool:
    kind = leaf.get("tensor")
    return kind is not None and kind[1] == [] and not kind[2]


def _near(one: Any, other: Any, scale: float) -> bool:
    if not (_is_number(one) and _is_number(other)):
        return bool(one == other)
    return abs(one - other) <= scale * (_ABSOLUTE + _RELATIVE * abs(one))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 90 else text[:87] + "..."
