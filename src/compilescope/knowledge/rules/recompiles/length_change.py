"""A list, tuple, dict or set with a different length."""

from __future__ import annotations

import re

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave, one_module
from compilescope.knowledge.rules.recompiles._subjects import called, inside, shown, wrapper_note

_UNEQUAL = re.compile(r"^len\((?P<container>.+)\) != (?P<length>\d+)$")
_ITERATOR = "___tuple_iterator_len("


def _container(miss: RecompileCase) -> str:
    subject = miss.finding.subject
    match = _UNEQUAL.match(subject)
    if match:
        return match["container"]
    if subject.startswith(_ITERATOR):
        return subject.removeprefix(_ITERATOR).removesuffix(")")
    return inside(subject, "len")


def _applies(miss: RecompileCase) -> bool:
    return _container(miss) != ""


def _modules(miss: RecompileCase) -> bool:
    return _container(miss).endswith("._modules")


def _is_dict(miss: RecompileCase) -> bool:
    # Torch tells a dict's length in words of its own, `len(d) != 1`.
    return (
        miss.finding.guard_kind.startswith("DICT")
        or _UNEQUAL.match(miss.finding.subject) is not None
    )


def _why(miss: RecompileCase) -> str:
    match = _UNEQUAL.match(miss.finding.subject)
    name = shown(_container(miss).removesuffix("._modules"))
    was = match["length"] if match else miss.finding.expected
    now = miss.finding.actual if miss.finding.actual.isdigit() else "another number"
    what = "layer" if _modules(miss) else "element"
    what += "" if was == "1" else "s"
    subject = {
        "kwargs": "the call's keyword arguments",
        "args": "the call's positional arguments",
    }.get(name, f"`{name}`")
    return (
        f"`{called(miss)}` was compiled with {was} {what} in {subject}; this call has {now}. The "
        f"graph has an input, or a piece of code, for each.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    container = _container(miss)
    name = shown(container)
    if _modules(miss):
        return [one_module(miss), leave(miss, "number of layers")]
    if container in ("kwargs", "args"):
        return [
            source(
                f"Call `{called(miss)}` with the same arguments each time, with a neutral value "
                "(such as zeros for something that is added) for those you don't need."
            ),
            leave(miss, "set of arguments"),
        ]
    if _is_dict(miss):
        return [
            source(
                f"Pass a `{name}` with the same entries in every call, with a neutral value for "
                f"missing ones, or pass only the tensors that `{called(miss)}` uses, as separate "
                "arguments."
            ),
            leave(miss, "set of entries"),
        ]
    return [
        source(
            f"Pass the same number of elements in `{name}` in every call, padded with neutral ones "
            "(such as zeros for a sum). If it grows from call to call, keep it in one tensor of "
            "fixed size."
        ),
        leave(miss, "length"),
    ]


RULE = GuardRule(
    id="length-change",
    order=350,
    needs=("len(",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
