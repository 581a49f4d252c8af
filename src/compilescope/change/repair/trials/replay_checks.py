"""Judges replays: of the original, of a version against it, and of the original against itself.

It reads tensors, so it needs torch: the workbench calls it by name, with JSON, in a process that
has imported torch already.

Two runs as a whole are compared by how often regions are called, and how large results are.
`astray` compares two versions, `differs_from_itself` one version with itself: what differs without
any change proves nothing about a fix.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from compilescope.change.fixes.patch import Allowance, dims_joined, fields_read, reading
from compilescope.change.repair.trials.child.recipes import OTHER_WEIGHTS, RECORDED, InputRecipe
from compilescope.change.repair.trials.recorded_runs import (
    EAGER_ALONE,
    ComparedValues,
    ReplayedRun,
    read_record,
)
from compilescope.change.repair.trials.replays import (
    Judge,
    ReplayDifference,
    Replays,
    same_kinds,
    same_values,
    unlike,
)
from compilescope.measure.diff.runs.model_state import GRADIENT
from compilescope.measure.diff.runs.trial import STEPPED
from compilescope.record.fix_search import FixCheck

_NAMES = {
    "values": "values",
    "errors": "exceptions",
    "aliases": "memory",
    "replaced": "memory",
    "gradients": "gradients",
    "random": "random numbers",
    "printed": "printed by regions",
    "surroundings": "global state",
}


_OF_EAGER = ("random", "replaced")


class Needs(Exception):
    """The original has to be replayed in another way before anybody can say: `compiled`, or
    `again`."""


def judge_original(asked: dict[str, Any]) -> Any:
    """`original`: can its calls be made again at all, with the same outcome?"""
    found = ComparedValues()
    probed = _probed(asked["original"])
    for call in probed.calls:
        if call["left_out"]:
            found.unknown(f"`{call['name']}` cannot be replayed: {call['left_out']}")
        elif call.get("shared"):
            names = ", ".join(call["shared"])
            found.unknown(f"`{call['name']}` cannot be replayed: {names} cannot be copied")
        elif _is_unlike(probed, call):
            found.unknown(f"`{call['name']}` returns something different when it is called again")
        for words in call.get("endless", ()):
            found.notes.append(f"`{call['name']}` does not finish on {words}: skipped")
        for family in call.get("fatal", ()):
            found.notes.append(f"other {family} end the process in `{call['name']}`: skipped")
    return msgspec.to_builtins(found)


def judge_version(asked: dict[str, Any]) -> Any:
    """`version` against `original`; `needs` where that takes the original `compiled` or `again`
    too."""
    found = ComparedValues()
    original, probed = _probed(asked["original"]), _probed(asked["version"])
    compiled, again = (
        _probed(asked[name]) if asked[name] is not None else None for name in ("compiled", "again")
    )
    allows: frozenset[Allowance] = frozenset(asked["allows"])
    read = fields_read(allows)
    if read is not None and len(original.record["regions"]) > 1:
        # Whose results these fields are of, nothing tells: all of them count.
        allows, read = allows - reading(read), None
    comparison = _Comparison(
        original, compiled, again, probed, allows, found, by_anyone=asked["by_anyone"]
    )
    comparison.modes = asked.get("modes", comparison.modes)
    try:
        comparison.compare_all()
    except Needs as needed:
        return {"needs": str(needed)}
    if not found.is_settled and "other-random-numbers" not in allows:
        wrong = astray(original, probed, sizes=read is None)
        if read is not None:
            shown = ", ".join(f"`{each}`" for each in sorted(read))
            found.notes.append(f"of its results, the program reads {shown} alone")
        if wrong:
            found.checks.append(FixCheck("calls", "fail", wrong))
    if probed.exit_status != original.exit_status and not found.is_settled:
        found.unknown("the program ends differently when its regions are replayed")
    if not found.is_settled:
        comparison.tell()
    return msgspec.to_builtins(found)


def judge_itself(asked: dict[str, Any]) -> str:
    """`first` and `again` are probes of one version: how they differ."""
    return differs_from_itself(_probed(asked["first"]), _probed(asked["again"]))


def _probed(asked: dict[str, Any]) -> ReplayedRun:
    folder = Path(asked["folder"])
    return ReplayedRun(folder, read_record(folder), exit_status=asked["exit_status"])


def _is_unlike(probed: ReplayedRun, call: dict[str, Any]) -> bool:
    """Does a replay on the recorded inputs not give what the program itself got?"""
    replays = Replays(probed, call)
    replay, real = replays.get(tuple(InputRecipe(RECORDED)), "eager"), call.get("real")
    if replay is None or real is None:
        return True
    if (replay["error"] is None) != (real["error"] is None):
        return True
    if real["error"] is not None:
        return False
    kept, got = replays.read(replay), replays.read(real)
    outputs = {p: v for p, v in kept.outcome.values.items() if v.kind == "output"}
    kept.outcome.values = {p: v for p, v in outputs.items() if p in got.outcome.values}
    return bool(unlike(kept, got))


_MOST_SHOWN = 3
"""Inputs by their sizes. Chosen: as many as one sentence bears."""


class _WrongReplay(NamedTuple):
    """A set of inputs on which two versions differ."""

    elements: int
    """Of its tensors."""
    call: dict[str, Any]
    recipe: tuple[Any, ...]
    mode: str
    differences: list[ReplayDifference]
    told: str
    """The sizes of its tensors."""


class _Comparison:
    def __init__(
        self,
        original: ReplayedRun,
        compiled: ReplayedRun | None,
        again: ReplayedRun | None,
        probed: ReplayedRun,
        allows: frozenset[Allowance],
        found: ComparedValues,
        *,
        by_anyone: bool,
    ) -> None:
        """`by_anyone`: the change is no fix of ours. Then compiled regions may be others, and what
        differs is told on the smallest inputs that show it."""
        self._original = original
        self._compiled = compiled
        self._again = again
        self._probed = probed
        self._allows = allows
        self._judge = Judge(allows, by_anyone=by_anyone)
        self._found = found
        self._theirs = {(c["region"], c["call"]): c for c in probed.calls}
        self._asked = 0
        self._by_anyone = by_anyone
        self.modes = ["eager", "compiled"]
        self._wrong: list[_WrongReplay] = []

    def compare_all(self) -> None:
        self._compare_calls()
        if self._wrong:
            # What one call shows another one need not.
            unequal = {InputRecipe(*wrong.recipe).words() for wrong in self._wrong}
            self._found.inputs = [each for each in self._found.inputs if each not in unequal]
            # Of those with as many elements the first: the recorded inputs come before others.
            least = min(self._wrong, key=lambda wrong: wrong.elements)
            self._report(least.call, least.recipe, least.mode, least.differences, least.told)

    def _compare_calls(self) -> None:
        for call in self._original.calls:
            other = self._theirs.get((call["region"], call["call"]))
            if other is None and self._by_anyone:
                self._found.unknown(
                    f"call {call['call']} of `{call['name']}` is not made: what is compiled is "
                    "called otherwise"
                )
                return
            if other is None:
                words = f"call {call['call']} of `{call['name']}` is missing: the program takes "
                self._fail("regions", f"{words}another path")
                return
            if other["left_out"]:
                self._found.unknown(f"`{call['name']}`: {other['left_out']}")
                return
            if other.get("left_out_recipes"):
                self._found.notes.append(f"{other['left_out_recipes']} sets of inputs skipped")
            self._compare_call(call, other)
            if self._found.is_settled:
                return

    def tell(self) -> None:
        if not self._original.calls:
            return
        if len(self._found.skipped) > self._asked:
            words = "on most inputs the original returns something different each time"
            self._found.unknown(words)
            return
        regions = len({call["region"] for call in self._original.calls})
        words = f"equal on {self._asked} sets of inputs to {regions} compiled regions"
        self._found.checks.append(FixCheck("values", "pass", words))

    def _fail(self, name: str, words: str) -> None:
        self._found.checks.append(FixCheck(name, "fail", words))

    def _compare_call(self, call: dict[str, Any], other: dict[str, Any]) -> None:
        ours, theirs = Replays(self._original, call), Replays(self._probed, other)
        if not self._compare_inputs(call, (ours, call["inputs"]), (theirs, other["inputs"])):
            return
        for recipe in ours.recipes:
            wanted = ours.get(recipe, "eager")
            if wanted is None:
                continue
            if recipe[0] == OTHER_WEIGHTS and "rebuilt-attributes" in self._allows:
                # What shared its memory moves with the other there, and no longer does here.
                words = f"`{call['name']}` on {InputRecipe(*recipe).words()}: not compared"
                self._found.notes.append(words)
                continue
            exact = ours.get(recipe, "exact")
            anchor = (ours, exact) if exact is not None else None
            for mode in self.modes:
                replay = theirs.get(recipe, mode)
                if replay is None:
                    if mode == "compiled" and recipe[0] == RECORDED:
                        self._found.unknown(f"`{call['name']}` was not replayed in compiled mode")
                        return
                    if mode == "eager" and self._by_anyone:
                        self._found.unknown(_not_replayed(call, other, recipe))
                        return
                    continue
                wrong = self._judge.differences((ours, wanted), (theirs, replay), exact)
                if wrong and mode == "compiled":
                    wrong = self._beyond_rounding(
                        recipe, wrong, (ours, wanted), (theirs, replay), anchor
                    )
                wrong = list(self._weighed(call, recipe, wrong, (theirs, replay), anchor))
                wrong = self._steady(call, recipe, wrong)
                if wrong and self._by_anyone and wrong[0].verdict == "fail":
                    self._wrong.append(self._wrong_replay(call, recipe, mode, wrong, ours))
                    break
                if wrong:
                    self._report(call, recipe, mode, wrong)
                    return
                is_last = mode == self.modes[-1] or recipe[0] in EAGER_ALONE
                if is_last and self._key(call, recipe) not in self._found.skipped:
                    self._asked += 1
                    self._found.inputs.append(InputRecipe(*recipe).words())

    @staticmethod
    def _key(call: dict[str, Any], recipe: tuple[Any, ...]) -> list[Any]:
        return [call["region"], call["call"], list(recipe)]

    def _beyond_rounding(
        self,
        recipe: tuple[Any, ...],
        wrong: list[ReplayDifference],
        wanted: tuple[Replays, Any],
        found: tuple[Replays, Any],
        exact: tuple[Replays, Any] | None,
    ) -> list[ReplayDifference]:
        """Where both versions give the same bits eagerly, the same operators ran: compiled in other
        pieces they may round otherwise."""
        eager = found[0].get(recipe, "eager")
        if eager is None or not self._judge.agree(wanted, (found[0], eager)):
            return wrong
        return [
            each
            for each in wrong
            if each.aspect != "values"
            or not self._judge.is_rounding(each.path, wanted, found, exact)
        ]

    def _steady(
        self, call: dict[str, Any], recipe: tuple[Any, ...], wrong: list[ReplayDifference]
    ) -> list[ReplayDifference]:
        """Those on which the original agrees with itself. On made-up inputs it need not: where a
        layer is given nothing but zeros, rounding is all that its gradients are made of, and on a
        GPU sums come in any order. What the recorded inputs give has to be steady."""
        if recipe[0] == RECORDED or not any(each.aspect == "values" for each in wrong):
            return wrong
        if self._again is None:
            raise Needs("again")
        own = _own_differences(self._original, self._again, call, recipe)
        if not own:
            return wrong
        only_gradients = all(_is_gradient(each) for each in own)
        left = [
            each
            for each in wrong
            if each.aspect != "values" or (only_gradients and not _is_gradient(each))
        ]
        if not left:
            key = self._key(call, recipe)
            if key not in self._found.skipped:
                self._found.skipped.append(key)
                what = (
                    "gradients of the original differ" if only_gradients else "the original differs"
                )
                on = InputRecipe(*recipe).words()
                words = f"`{call['name']}` on {on}: {what} from run to run, not compared"
                self._found.notes.append(f"{words} ({own[0].words})")
        return left

    def _compare_inputs(self, call: dict[str, Any], ours: Any, theirs: Any) -> bool:
        dims = dims_joined(self._allows)
        if not same_kinds(ours, theirs, dims):
            # It may well be right; but what other inputs would be alike nobody can say.
            self._found.unknown(f"`{call['name']}` is called with different kinds of arguments")
            return False
        words = same_values(ours, theirs, dims)
        if words and self._by_anyone and self._gives_the_same(ours[0], theirs[0]):
            self._found.unknown(
                f"`{call['name']}` is called with different inputs ({words}): what it makes of "
                "them could not be compared"
            )
        elif words:
            self._fail("inputs", f"`{call['name']}` is called with different inputs: {words}")
        return not words

    @staticmethod
    def _gives_the_same(ours: Replays, theirs: Replays) -> bool:
        """For the program itself, whatever the inputs: or is it another region by now?"""
        if ours.call["name"] != theirs.call["name"]:
            return True
        one, other = ours.call.get("real"), theirs.call.get("real")
        if one is None or other is None or one["error"] or other["error"]:
            return False
        return not unlike(ours.read(one), theirs.read(other))

    def _wrong_replay(
        self,
        call: dict[str, Any],
        recipe: tuple[Any, ...],
        mode: str,
        wrong: list[ReplayDifference],
        ours: Replays,
    ) -> _WrongReplay:
        inputs = ours.read(call["inputs"]).outcome.values
        tensors = {p: v.leaf for p, v in inputs.items() if isinstance(v.leaf, torch.Tensor)}
        elements = sum(tensor.numel() for tensor in tensors.values())
        leading = max((t.shape[0] for t in tensors.values() if t.dim()), default=1)
        if recipe[0] in ("first-size", "empty"):
            grown = 0 if recipe[0] == "empty" else leading + int(recipe[2])
            elements = elements * max(grown, 0) // max(leading, 1)
        shown = [
            f"{path} {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
            for path, tensor in tensors.items()
        ]
        told = ", ".join(shown[:_MOST_SHOWN]) + (", ..." if len(shown) > _MOST_SHOWN else "")
        return _WrongReplay(elements, call, recipe, mode, wrong, told)

    def _weighed(
        self,
        call: dict[str, Any],
        recipe: tuple[Any, ...],
        wrong: list[ReplayDifference],
        found: tuple[Replays, dict[str, Any]],
        exact: tuple[Replays, dict[str, Any]] | None,
    ) -> Iterator[ReplayDifference]:
        """Those that compiling the original does not make as well, and that chance does not: it
        gives the same numbers, or is as far from the float64 ones."""
        if wrong and "other-random-numbers" in self._allows and _draws(call):
            wrong = [d for d in wrong if not (d.aspect == "values" and _is_number_only(d))]
            self._found.notes.append(f"`{call['name']}` draws random numbers: values not compared")
        if not wrong:
            return
        if self._compiled is None:
            raise Needs("compiled")
        compiled = {(c["region"], c["call"]): c for c in self._compiled.calls}
        known = compiled.get((call["region"], call["call"]))
        original = Replays(self._compiled, known) if known is not None else None
        replay = original.get(recipe, "compiled") if original is not None else None
        if original is None or replay is None:
            yield from wrong
            return
        left = self._judge.differences((original, replay), found)
        if left and exact is not None:
            far = self._judge.differences((original, replay), found, exact[1], exact[0])
            both = {(d.aspect, d.path) for d in far}
            left = [d for d in left if d.aspect != "values" or (d.aspect, d.path) in both]
        same = {(d.aspect, d.path) for d in left}
        # What is compared between eager runs only: compiling says nothing of it.
        kept = [d for d in wrong if d.aspect in _OF_EAGER or (d.aspect, d.path) in same]
        yield from kept
        if not left and not kept:
            on = InputRecipe(*recipe).words()
            words = f"`{call['name']}` on {on}: compiling it makes a difference"
            self._found.notes.append(f"{words} without the patch too ({wrong[0].words})")

    def _report(
        self,
        call: dict[str, Any],
        recipe: tuple[Any, ...],
        mode: str,
        wrong: list[ReplayDifference],
        shown: str = "",
    ) -> None:
        wrong = sorted(wrong, key=lambda difference: difference.verdict != "fail")
        first = wrong[0]
        inputs = InputRecipe(*recipe).words()
        how = "" if mode == "eager" else ", compiled"
        inputs += f" ({shown})" if shown else ""
        words = f"`{call['name']}` on {inputs}{how}: {first.words}"
        self._found.checks.append(FixCheck(_NAMES[first.aspect], first.verdict, words))


def _not_replayed(call: dict[str, Any], other: dict[str, Any], recipe: tuple[Any, ...]) -> str:
    on = InputRecipe(*recipe).words()
    if on in other.get("endless", ()):
        return f"`{call['name']}` on {on}: it does not finish; the original does"
    return f"`{call['name']}` on {on}: it could not be called"


def _own_differences(
    first: ReplayedRun, again: ReplayedRun, call: dict[str, Any], recipe: tuple[Any, ...]
) -> list[ReplayDifference]:
    """Of one version from itself, on one set of inputs."""
    place = (call["region"], call["call"])
    other = next((c for c in again.calls if (c["region"], c["call"]) == place), None)
    if other is None:
        return []
    ours, theirs = Replays(first, call), Replays(again, other)
    old, new = ours.get(recipe, "eager"), theirs.get(recipe, "eager")
    if old is None or new is None:
        return []
    found = Judge(frozenset()).differences((ours, old), (theirs, new), ours.get(recipe, "exact"))
    return [each for each in found if each.aspect == "values"]


def _is_gradient(difference: ReplayDifference) -> bool:
    """Or what a step of an optimizer makes of gradients."""
    return difference.path.startswith(GRADIENT) or difference.path.endswith(STEPPED)


def _draws(call: dict[str, Any]) -> bool:
    """Does it draw random numbers?"""
    return any(r["random"] not in ("", call["random"]) for r in call["replays"])


def _is_number_only(difference: ReplayDifference) -> bool:
    return "elements" in difference.words or "error" in difference.words


APART = 0.02
"""Relative. Of calls that are not replayed only sums of absolute values are known, and the rounding
of all steps so far is in them. benchmarks/fix_limits.py measures how far right patches drift."""


def astray(before: ReplayedRun, after: ReplayedRun, *, sizes: bool = True) -> str:
    """Where the calls of regions, also those that were not recorded, are not as many or give
    something of another size; empty where they do not. `sizes`: compare these too."""
    for number, name in enumerate(before.record["regions"]):
        old, new = (p.record["trails"].get(str(number), []) for p in (before, after))
        if len(old) != len(new):
            return f"{name} is called {len(new)} times; the original calls it {len(old)} times"
        for call, (a, b) in enumerate(zip(old, new, strict=True), 1):
            if sizes and _gap(a, b) > APART:
                words = (
                    f"call {call} of {name} returns something different: its numbers add up to "
                    f"{b:g}"
                )
                return f"{words} instead of {a:g}"
    return ""


def drift_of(before: ReplayedRun, after: ReplayedRun) -> float:
    """The largest gap of all calls that both have made."""
    theirs = after.record["trails"]
    gaps = [
        _gap(a, b)
        for number, trail in before.record["trails"].items()
        for a, b in zip(trail, theirs.get(number, ()), strict=False)
    ]
    return max(gaps, default=0.0)


def _gap(one: float, other: float) -> float:
    """Relative to the larger; of infinities and NaN, all or nothing."""
    if one == other or (one != one and other != other):
        return 0.0
    gap = abs(one - other) / max(abs(one), abs(other))
    return gap if gap == gap else math.inf


def differs_from_itself(first: ReplayedRun, again: ReplayedRun) -> str:
    """How two eager probes of one version differ; empty where they do not."""
    if first.exit_status != again.exit_status or len(first.calls) != len(again.calls):
        return "the program does not always call the same regions"
    judge = Judge(frozenset())
    for one, other in zip(first.calls, again.calls, strict=True):
        if one["left_out"] or other["left_out"]:
            continue
        ours, theirs = Replays(first, one), Replays(again, other)
        words = same_values((ours, one["inputs"]), (theirs, other["inputs"]))
        if words:
            return f"`{one['name']}` is called with different inputs each time: {words}"
        for recipe in ours.recipes:
            old, new = ours.get(recipe, "eager"), theirs.get(recipe, "eager")
            if old is None or new is None:
                continue
            wrong = judge.differences((ours, old), (theirs, new))
            if wrong:
                return f"`{one['name']}` returns something different each time: {wrong[0].words}"
    return astray(first, again)
