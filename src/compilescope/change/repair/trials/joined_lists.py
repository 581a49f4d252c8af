"""Lists of tensors that a version keeps joined: what the original has in a list, joined, has to be
the one tensor that the version has in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import torch

from compilescope.base.patterns import late
from compilescope.change.repair.trials.child.kept_outcomes import KeptOutcome
from compilescope.measure.diff.runs.trial import AFTER, TrialValue

_ITEM = late(r"(.*)\[(\d+)\]$")
_EMPTY_WORDS = late(r"list of \d+: $")
"""What is said of a list that holds nothing but tensors."""


def with_lists(kept: KeptOutcome, lists: KeptOutcome | None) -> KeptOutcome:
    """With all items of the lists that a call changed, also those that it left alone."""
    if lists is None:
        return kept
    values = {**lists.outcome.values, **kept.outcome.values}
    classes = {**lists.classes, **kept.classes}
    return KeptOutcome(replace(kept.outcome, values=values), classes)


def joined_in(old: KeptOutcome, new: KeptOutcome, dims: Collection[int]) -> dict[str, int]:
    """The lists that are the same but joined in the new one, and in which dimension."""
    ours, theirs = _lists(old), _lists(new)
    found: dict[str, int] = {}
    for name, items in ours.items():
        other = theirs.get(name, [])
        if len(other) != 1:
            continue
        for dim in sorted(dims):
            joined = _joined(items, dim)
            if joined is not None and joined.shape == other[0].shape:
                found[name] = dim
    return found


def with_joined(kept: KeptOutcome, lists: Mapping[str, int]) -> KeptOutcome:
    """Each of these lists is one value."""
    values, classes = dict(kept.outcome.values), dict(kept.classes)
    containers = dict(kept.outcome.containers)
    for name, items in _lists(kept).items():
        joined = _joined(items, lists[name]) if name in lists else None
        if joined is None:
            continue
        head, end = _parted(name)
        paths = [f"{head}[{number}]{end}" for number in range(len(items))]
        kind = values[paths[0]].kind
        for path in paths:
            values.pop(path, None)
            classes.pop(path, None)
        containers.pop(head, None)
        values[f"{head}, joined{end}"] = TrialValue(kind, joined)
    return KeptOutcome(replace(kept.outcome, values=values, containers=containers), classes)


def is_item_of(path: str, lists: Iterable[str]) -> bool:
    """Of one of these lists, before the call or after it?"""
    match = _ITEM.match(path.removesuffix(AFTER))
    return match is not None and match[1] in {_parted(name)[0] for name in lists}


def are_lists(*words: str | None) -> bool:
    """Is it said of all that they are lists of tensors, however many?"""
    return all(each is not None and _EMPTY_WORDS.match(each) for each in words)


def _parted(name: str) -> tuple[str, str]:
    head = name.removesuffix(AFTER)
    return head, name[len(head) :]


def _lists(kept: KeptOutcome) -> dict[str, list[torch.Tensor]]:
    """Items by the name of their list, those after a call apart from others."""
    found: dict[str, dict[int, TrialValue]] = {}
    for path, value in kept.outcome.values.items():
        head, end = _parted(path)
        match = _ITEM.match(head)
        if match is not None:
            found.setdefault(match[1] + end, {})[int(match[2])] = value
    lists: dict[str, list[torch.Tensor]] = {}
    for name, items in found.items():
        leaves = [items[number].leaf for number in sorted(items)]
        whole = sorted(items) == list(range(len(items)))
        if whole and all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            lists[name] = leaves
    return lists


def _joined(items: list[torch.Tensor], dim: int) -> torch.Tensor | None:
    try:
        return torch.cat(items, dim)
    except (RuntimeError, IndexError):
        return None
