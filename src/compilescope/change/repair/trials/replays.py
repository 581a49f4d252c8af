"""Compares what two versions gave for one call of a compiled region, on one set of inputs."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from compilescope.base.patterns import late
from compilescope.change.fixes.patch import Allowance, dims_joined, fields_read
from compilescope.change.repair.trials.child.kept_outcomes import KeptOutcome, read_kept
from compilescope.change.repair.trials.child.recipes import is_whole
from compilescope.change.repair.trials.joined_lists import (
    are_lists,
    is_item_of,
    joined_in,
    with_joined,
    with_lists,
)
from compilescope.change.repair.trials.printed_output import compare_output
from compilescope.change.repair.trials.recorded_runs import ReplayedRun
from compilescope.measure.diff.runs.trial import TrialOutcome, TrialValue
from compilescope.measure.diff.values import Comparer
from compilescope.measure.tensors.structure import MISSING
from compilescope.measure.tensors.tolerances import (
    ComparisonConfig,
    is_same,
    is_same_value,
    relative_distance,
    unit_of,
)
from compilescope.record.body import Verdict

Replay = dict[str, Any]


@dataclass(frozen=True)
class ReplayDifference:
    """Something that a caller could see, and that is not the same."""

    aspect: str
    """`values`, `errors`, `aliases`, `gradients`, `printed`, `random`, `replaced` or
    `surroundings`."""
    path: str
    verdict: Verdict
    """`fail` or `unknown`."""
    words: str


_KEPT = 2
"""Outcomes in memory. Chosen: what the original gave on one set of inputs, eagerly and exactly."""


class Replays:
    """The replays of one call, by recipe and mode."""

    def __init__(self, probed: ReplayedRun, call: Mapping[str, Any]) -> None:
        self._folder: Path = probed.folder
        self.call = call
        self._found = {(tuple(r["recipe"]), r["mode"]): r for r in call["replays"]}
        self._kept: dict[str, KeptOutcome] = {}

    def get(self, recipe: tuple[Any, ...], mode: str) -> Replay | None:
        return self._found.get((recipe, mode))

    @property
    def recipes(self) -> list[tuple[Any, ...]]:
        return list(dict.fromkeys(recipe for recipe, _ in self._found))

    @functools.cached_property
    def held(self) -> dict[str, Any]:
        """What was there before the call, where the original's call left a change."""
        found = self.call.get("held")
        values = self.read(found).outcome.values if found is not None else {}
        return {path: value.leaf for path, value in values.items()}

    def read(self, replay: Mapping[str, Any]) -> KeptOutcome:
        """One is mostly asked for again at once: the same inputs, compiled."""
        name = replay["file"]
        if name not in self._kept:
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[name] = read_kept(self._folder, dict(replay))
        kept = self._kept[name]
        return replace(kept, outcome=replace(kept.outcome))

    def with_lists(self, replay: Mapping[str, Any]) -> KeptOutcome:
        """With all that lists hold which the call changed."""
        name = replay.get("lists")
        lists = self.read({"file": name, "containers": {}}) if name else None
        return with_lists(self.read(replay), lists)


_ROUNDINGS = 64
"""Of the numbers' dtype, in the norm. Chosen: convolutions of another layout were seen to differ by
some ten, graphs that are wrong by thousands."""


_TIMES_OWN = 8
"""So much farther from float64 than eager mode is. Chosen: sums in another order were seen to be up
to four times as far."""


class Judge:
    """Compares replays of one region under what a patch allows."""

    def __init__(self, allows: frozenset[Allowance], *, by_anyone: bool = False) -> None:
        """`by_anyone`: the change is no fix of ours, which may put an equal tensor in the place of
        one that is written into."""
        self._allows = allows
        self._by_anyone = by_anyone
        self._read = fields_read(allows)
        self._dims = dims_joined(allows)

    def differences(
        self,
        wanted: tuple[Replays, Replay],
        found: tuple[Replays, Replay],
        exact: Replay | None = None,
        exact_in: Replays | None = None,
    ) -> list[ReplayDifference]:
        """Of `found` from `wanted`; `exact` is a replay of the same inputs in float64, one of the
        wanted ones unless `exact_in` names others."""
        old, new = wanted[1], found[1]
        raised = list(self._errors(old, new))
        if raised or (old["error"] is not None and new["error"] is None):
            return raised
        kept, other = wanted[0].read(old), found[0].read(new)
        truth = (exact_in or wanted[0]).read(exact) if exact is not None else None
        joined: dict[str, int] = {}
        if self._dims:
            kept, other = wanted[0].with_lists(old), found[0].with_lists(new)
            joined = joined_in(kept, other, self._dims)
            kept, other = with_joined(kept, joined), with_joined(other, joined)
            if truth is not None and exact is not None:
                truth = with_joined((exact_in or wanted[0]).with_lists(exact), joined)
        compared = list(_compare(kept, other, truth, exact, found[0].held))
        if "rebuilt-attributes" in self._allows:
            free = {*new["created"], *new["rebound"]} - set(kept.outcome.values)
            compared = [each for each in compared if each.path not in free]
        if old["error"] is None:
            compared += self._notes(old, new, joined)
        if self._read is not None:
            gone = _fields(kept) - _fields(other) - self._read
            compared = [each for each in compared if _field_of(each.path) not in gone]
        return compared + list(self._printed(old, new))

    def agree(self, one: tuple[Replays, Replay], other: tuple[Replays, Replay]) -> bool:
        """Bit by bit, in all that they give?"""
        values = [side.read(replay).outcome.values for side, replay in (one, other)]
        return values[0].keys() == values[1].keys() and all(
            is_same_value(value.leaf, values[1][path].leaf, unclear=False)
            for path, value in values[0].items()
        )

    def is_rounding(
        self,
        path: str,
        one: tuple[Replays, Replay],
        other: tuple[Replays, Replay],
        exact: tuple[Replays, Replay] | None,
    ) -> bool:
        """No more than compiling in other pieces may round otherwise?"""
        given = [one, other, *([exact] if exact is not None else [])]
        sides = [side.read(replay).outcome.values.get(path) for side, replay in given]
        leaves = [side.leaf for side in sides if side is not None]
        if len(leaves) < 2 or not all(isinstance(each, torch.Tensor) for each in leaves):
            return False
        if not torch.equal(leaves[0].isfinite(), leaves[1].isfinite()):
            return False
        far = relative_distance(*leaves[:2])
        if far is None or far <= _ROUNDINGS * unit_of(leaves[0].dtype):
            return far is not None
        if len(leaves) < 3 or not all(each.isfinite().all() for each in leaves):
            return False
        # Where numbers cancel, eager mode has no right digit either: it is as far off itself.
        own, its = ((each.double() - leaves[2].double()).norm() for each in leaves[:2])
        return bool(its <= _TIMES_OWN * own)

    def _errors(self, old: Replay, new: Replay) -> Iterator[ReplayDifference]:
        was, now = old["error"], new["error"]
        if was is None and now is not None:
            words = f"it raises {_shown(now)}; the original does not raise"
            yield ReplayDifference("errors", "", "fail", words)
        elif was is not None and now is None:
            if "fewer-errors" not in self._allows:
                words = f"it does not raise; the original raises {_shown(was)}"
                yield ReplayDifference("errors", "", "fail", words)
        elif was is not None and "exception-type" not in self._allows:
            # What an operator of torch raises has other words when it is compiled.
            strict = was["raised"] or new["mode"] == "eager"
            same = was["type"] == now["type"] and _words(was) == _words(now)
            if strict and not same:
                words = f"it raises {_shown(now)}; the original raises {_shown(was)}"
                yield ReplayDifference("errors", "", "fail", words)

    def _notes(
        self, old: Replay, new: Replay, joined: Collection[str]
    ) -> Iterator[ReplayDifference]:
        aliases = dict.fromkeys([*old["aliases"], *new["aliases"]])
        for path in aliases:
            was, now = old["aliases"].get(path), new["aliases"].get(path)
            if was != now and not is_item_of(path, joined):
                words = f"{path} is {now or 'new memory'} instead of {was or 'new memory'}"
                yield ReplayDifference("aliases", path, "fail", words)
        for name in dict.fromkeys([*old["surroundings"], *new["surroundings"]]):
            was, now = old["surroundings"].get(name), new["surroundings"].get(name)
            if was != now and not (self._dims and are_lists(was, now)):
                words = f"after the call {name} is {now or 'unchanged'}"
                words += f"; the original leaves it {was or 'unchanged'}"
                yield ReplayDifference("surroundings", name, "fail", words)
        for path, needs in old["gradients"].items():
            if new["gradients"].get(path, needs) != needs:
                words = f"{path} {'no longer requires' if needs else 'now requires'} a gradient"
                yield ReplayDifference("gradients", path, "fail", words)
        both_eager = old["mode"] == new["mode"] == "eager"
        if both_eager and self._by_anyone:
            yield from _replaced(old["replaced"], new["replaced"])
        others = both_eager and old["random"] != new["random"]
        if others and "other-random-numbers" not in self._allows:
            yield ReplayDifference("random", "", "fail", "it draws more or fewer random numbers")

    def _printed(self, old: Replay, new: Replay) -> Iterator[ReplayDifference]:
        texts = ["\n".join(replay["printed"]).encode() for replay in (old, new)]
        told = compare_output(texts[0], texts[1], self._allows)
        if told.verdict == "fail":
            yield ReplayDifference(
                "printed", "", "fail", f"what it prints or logs differs: {told.words}"
            )


def _replaced(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[ReplayDifference]:
    """Who holds the tensor that was there sees whether it is written into, or left behind."""
    for path in dict.fromkeys([*old, *new]):
        was, now = (each.get(path, "the tensor that it was") for each in (old, new))
        if was != now:
            words = f"after the call {path} is {now} instead of {was}"
            yield ReplayDifference("replaced", path, "fail", words)


_FIELD = late(r"output(?:\.(\w+)|\['(\w+)'\])")


def _field_of(path: str) -> str:
    """`past` for `output.past.layers[0].keys` or `output['past']`: what the program reads of the
    result to get there."""
    found = _FIELD.match(path)
    return found.group(1) or found.group(2) if found else ""


def _fields(kept: KeptOutcome) -> set[str]:
    """Of the result itself, those that are not None."""
    leaves = [path for path, value in kept.outcome.values.items() if value.leaf is not None]
    return {_field_of(path) for path in [*leaves, *kept.outcome.containers]} - {""}


def _compare(
    old: KeptOutcome,
    new: KeptOutcome,
    truth: KeptOutcome | None,
    exact: Replay | None,
    held: Mapping[str, Any] | None = None,
) -> Iterator[ReplayDifference]:
    """`held`: what the new one had before the call already, so that it left no change there."""
    for path in dict.fromkeys([*old.classes, *new.classes]):
        was, now = old.classes.get(path), new.classes.get(path)
        if was is not None and now is not None and was != now:
            yield ReplayDifference("values", path, "fail", f"{path} is a {now} instead of a {was}")
    reduction = exact.get("reduction") if exact is not None else None
    comparer = Comparer(
        ComparisonConfig(reduction=reduction),
        lambda path: (held or {}).get(path, MISSING),
        _narrowest(old),
    )
    anchor = truth.outcome if truth is not None else None
    same = {path for path, value in old.outcome.values.items() if _is_same(value, new, path)}
    for diff in comparer.compare(_without(old, same), _without(new, same), anchor):
        if diff.verdict != "pass":
            reason = diff.reason.replace("the reference", "the original")
            reason = reason.replace("the test", "the new version")
            words = f"{diff.path}: {reason}"
            yield ReplayDifference("values", diff.path, diff.verdict, words)


def _is_same(value: TrialValue, other: KeptOutcome, path: str) -> bool:
    """Nothing is left to compare in most of what a version that is right gives."""
    found = other.outcome.values.get(path)
    if found is None or not isinstance(found.leaf, torch.Tensor):
        return False
    return isinstance(value.leaf, torch.Tensor) and is_same(value.leaf, found.leaf)


def _without(kept: KeptOutcome, paths: Collection[str]) -> TrialOutcome:
    left = {path: value for path, value in kept.outcome.values.items() if path not in paths}
    return replace(kept.outcome, values=left)


def same_values(
    one: tuple[Replays, Any], other: tuple[Replays, Any], dims: Collection[int] = ()
) -> str:
    """Do two kept sets of inputs agree, up to rounding and the form of a number? Empty, or how
    they do not. Lists in the other may be joined, in one of `dims`."""
    return unlike(*_inputs(one, other, dims))


def same_kinds(
    one: tuple[Replays, Any], other: tuple[Replays, Any], dims: Collection[int] = ()
) -> bool:
    """Are they tensors, numbers and words at the same places?"""
    wanted, found = _inputs(one, other, dims)
    return _kinds(wanted) == _kinds(found)


def _inputs(
    one: tuple[Replays, Any], other: tuple[Replays, Any], dims: Collection[int]
) -> tuple[KeptOutcome, KeptOutcome]:
    wanted, found = one[0].read(one[1]), other[0].read(other[1])
    if dims:
        joined = joined_in(wanted, found, dims)
        wanted, found = with_joined(wanted, joined), with_joined(found, joined)
    return wanted, _in_form_of(wanted, found)


def _kinds(kept: KeptOutcome) -> dict[str, str]:
    return {
        path: "tensor" if path in kept.classes else type(value.leaf).__name__
        for path, value in kept.outcome.values.items()
    }


def _in_form_of(wanted: KeptOutcome, found: KeptOutcome) -> KeptOutcome:
    """The same numbers, handed in as the other hands them in: other inputs are made to be alike
    too, and what the region makes of them is compared as it is."""
    values, classes = dict(found.outcome.values), dict(found.classes)
    for path, value in values.items():
        was = wanted.outcome.values.get(path)
        if was is None or not isinstance(value.leaf, torch.Tensor):
            continue
        leaf, form = value.leaf, was.leaf
        if type(form) in (int, float) and leaf.dim() == 0 and not leaf.is_complex():
            values[path] = TrialValue(value.kind, type(form)(leaf.item()))
            classes.pop(path, None)
        elif is_whole(leaf) and is_whole(form):
            narrow = leaf.to(form.dtype)
            if torch.equal(narrow.to(leaf.dtype), leaf):
                values[path] = TrialValue(value.kind, narrow)
    return KeptOutcome(replace(found.outcome, values=values), classes)


def unlike(one: KeptOutcome, other: KeptOutcome) -> str:
    for difference in _compare(one, other, None, None):
        if difference.verdict == "fail":
            return difference.words
    return ""


def _narrowest(kept: KeptOutcome) -> torch.dtype:
    leaves = [value.leaf for value in kept.outcome.values.values()]
    dtypes = {x.dtype for x in leaves if isinstance(x, torch.Tensor) and x.is_floating_point()}
    return max(dtypes | {torch.float32}, key=lambda dtype: torch.finfo(dtype).eps)


def _shown(error: Mapping[str, Any]) -> str:
    words = _words(error)
    return f"{error['type']}: {words[:160]}" if words else str(error["type"])


def _words(error: Mapping[str, Any]) -> str:
    """The first line: torch adds where it happened below."""
    lines = str(error["message"]).strip().splitlines()
    return " ".join(lines[0].split()) if lines else ""
