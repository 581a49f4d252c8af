"""Runs the program eagerly, and replays the first calls of each compiled region on other inputs.

The program does not notice: its state, random numbers and streams are as they were.
A replay that does not end is stopped: `while x.abs().max() > 1` never does on made-up infinities.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import torch

from compilescope.change.repair.trials.child.borders import beside, solve_border
from compilescope.change.repair.trials.child.branches import Coverage, SourceBranch
from compilescope.change.repair.trials.child.collectives import alone, is_in_group, one_process
from compilescope.change.repair.trials.child.fatal_inputs import FatalInputs, asking
from compilescope.change.repair.trials.child.iterators import renewing, settled
from compilescope.change.repair.trials.child.kept_outcomes import OutcomeKeeper, claim, size_of
from compilescope.change.repair.trials.child.line_watcher import within_region
from compilescope.change.repair.trials.child.list_contents import shapes_of_lists
from compilescope.change.repair.trials.child.notes import describe_error, random_state
from compilescope.change.repair.trials.child.recipe_sets import (
    more_recipes,
    on_other_values,
    usual_recipes,
    wary_recipes,
)
from compilescope.change.repair.trials.child.recipes import (
    ASKED_OF_ANYBODY,
    OTHER_WEIGHTS,
    RECORDED,
    InputRecipe,
    family_of,
    is_whole,
    without_fatal,
)
from compilescope.change.repair.trials.child.replay import Replay
from compilescope.change.repair.trials.child.truths import listening, ties, truths
from compilescope.instrument.torchapi.regions import CompiledRegion, Regions
from compilescope.measure.diff.runs.trial import TrialOutcome, TrialValue
from compilescope.measure.tensors.structure import argument_leaves, take_apart

_AGAIN_S = 1.0
"""A bare `except` of the program's may catch it once: it rings again. Chosen: long enough for the
program to leave its handler."""


class Endless(BaseException):
    """It took too long. Not an `Exception`: the program is not to take it for its own."""


@contextlib.contextmanager
def ending_within(seconds: float | None) -> Iterator[None]:
    """Raises `Endless` in the block after so long; None, and where no alarm can be set: never."""
    alarm = getattr(signal, "setitimer", None)
    free = threading.current_thread() is threading.main_thread()
    if seconds is None or alarm is None or not free or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    alarm(signal.ITIMER_REAL, seconds, _AGAIN_S)
    try:
        yield
    finally:
        alarm(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)


def _ring(number: int, frame: FrameType | None) -> None:
    raise Endless


_T = TypeVar("_T")
REGIONS = 24
"""Chosen, as the limits below (docs/inside/verifying.md lists them): what is beyond is left out,
and the notes say so. Every region costs its replays, eager and compiled."""
CALLS = 4
"""Of one region. Chosen: only calls with other shapes or kinds of arguments count, but for the
second."""
_BYTES = 4 << 30
"""Of numbers on disk, for one probe. Chosen: space against how much of a large model is
compared."""
_TRAIL = 1000
"""So many calls of a region are followed. Chosen: all of them are written anew at every
doubling."""
_HUNT_S = 20.0
"""For all regions together. Chosen: time that is only spent where a side of a branch was never
taken, against patches that stay unverified because of it."""
_BORDERS = 4
"""Comparisons of which the border is looked for. Chosen: each costs some replays."""
_PATIENCE_S, _PATIENCE = 5.0, 20
"""Made-up inputs may take so many seconds, and so many times what the recorded ones took. Chosen: a
loop that does not end must cost little, and a busy machine must not look like one."""
_PATIENCE_COMPILED_S = 30.0
"""The same for a version that is held against the original, which compiles in that time. Chosen."""
_EXACT = ("recorded", "values", "scaled", "first-size", "shifted", "weights", "trained")


@contextlib.contextmanager
def _untraced() -> Iterator[None]:
    """Who traces the program is not to see the replays."""
    before = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(before)


def _bound_memory() -> None:
    """Made-up numbers may ask for more memory than there is (`one_hot` of a label in the billions):
    that is to raise in this process, and not to take the machine down."""
    try:
        import resource

        here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        with open("/proc/self/status") as file:
            has = next(int(row.split()[1]) * 1024 for row in file if row.startswith("VmData"))
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        known = [each for each in (soft, hard) if each != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min([has + here, *known]), hard))
    except (ImportError, OSError, StopIteration, ValueError):
        return  # No such limit here.


class Prober:
    """Records regions as they are called."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._folder = Path(options["folder"])
        self._compiled = bool(options["compiled"])
        self._sizes = bool(options["sizes"])
        self._thorough = bool(options["thorough"])
        self._wary = bool(options["wary"])
        self._numbers: list[float] = options["numbers"]
        self._seconds = float(options["seconds"])
        self._like = {(p["region"], p["call"]): p for p in options["like"] or ()}
        self._follows = options["like"] is not None
        self._fatal = {int(region): families for region, families in options["fatal"].items()}
        self._collective = set(options["collective"])
        self._places: list[tuple[str, int]] = [(file, line) for file, line in options["focus"]]
        self._coverage = Coverage({file for file, _ in self._places})
        self._regions = Regions(self._on_call)
        self._keeper = OutcomeKeeper(self._folder)
        self._calls: dict[CompiledRegion, int] = {}
        self._signatures: dict[CompiledRegion, set[Any]] = {}
        self._record: dict[str, Any] = {
            "calls": [],
            "left_out": [],
            "collective": [],
            "regions": [],
            "trails": {},
        }
        self._spent = self._hunted = 0.0
        self._patience_s = _PATIENCE_S
        self._is_other = False
        """Is the call that is asked now unlike all before it?"""
        self._claimed: bool | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def begin(self) -> None:
        _bound_memory()
        self._regions.install()
        atexit.register(self._end)

    def ask(self, region: CompiledRegion, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record a call that is made for nobody, in a process that is not here for replays."""
        with one_process(), _untraced():
            self._ask(region, args, kwargs)
        self._keeper.write(self._record)

    def _on_call(
        self, region: CompiledRegion, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        entry = None
        if self._lock.acquire(blocking=False):
            try:
                with one_process(), _untraced():
                    entry = self._ask(region, args, kwargs)
            finally:
                self._lock.release()
        with self._regions.calling("eager"), within_region():
            if entry is None:
                result = region.eager(*args, **kwargs)
            else:
                result = self._real_call(region, args, kwargs, entry)
        self._follow(region, result)
        return result

    def _follow(self, region: CompiledRegion, result: Any) -> None:
        """Keep the size of what a call gave, so that a later one that goes astray is found."""
        trail = self._record["trails"].setdefault(str(region.number), [])
        if self._claimed and len(trail) < _TRAIL:
            trail.append(size_of(result))
            # At every doubling: the last calls of a long program may go untold, not its first ones.
            if len(trail) & (len(trail) - 1) == 0:
                self._keeper.write(self._record)

    def _end(self) -> None:
        # A forked child has the record too, but it is its parent's to write.
        if self._claimed and os.getpid() == self._pid:
            self._keeper.write(self._record)

    def _real_call(
        self, region: CompiledRegion, args: Any, kwargs: Any, entry: dict[str, Any]
    ) -> Any:
        """What the program itself gets: kept too, to see whether a replay is like it."""
        try:
            result = region.eager(*args, **kwargs)
        except Exception as error:
            entry["real"] = {"error": describe_error(error)}
            self._keeper.write(self._record)
            raise
        # The border to values of any kind: what cannot be kept is not compared.
        with contextlib.suppress(Exception):
            apart = take_apart(result)
            entry["real"] = {"error": None, **self._kept_leaves(apart.leaves, apart.containers)}
        self._keeper.write(self._record)
        return result

    def _kept_leaves(self, leaves: dict[str, Any], containers: dict[str, str]) -> dict[str, Any]:
        values = {path: TrialValue("output", leaf) for path, leaf in leaves.items()}
        return {"file": self._keeper.keep(TrialOutcome(values=values)), "containers": containers}

    def _ask(
        self, region: CompiledRegion, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any] | None:
        """The entry of this call in the record; None where it is not recorded."""
        if self._claimed is None:
            self._claimed = claim(self._folder)
        number = self._calls[region] = self._calls.get(region, 0) + 1
        if number == 1 and self._claimed:
            self._record["regions"].append(region.name)
        if not self._claimed or not self._wanted(region, number, args, kwargs):
            return None
        entry: dict[str, Any] = {
            "region": region.number,
            "name": region.name,
            "call": number,
            "replays": [],
            "left_out": "",
        }
        self._record["calls"].append(entry)
        begun = time.monotonic()
        replay: Replay | None = None
        try:
            like = self._like.get((region.number, number))
            args, kwargs, places = settled(args, kwargs)
            again = renewing(region, places)
            replay = Replay(
                self._regions, again, (args, kwargs), self._keeper, like, wary=self._wary
            )
            entry["inputs"] = self._kept_leaves(argument_leaves(args, kwargs), {})
            entry["weights"] = replay.weights
            entry["forms"] = _forms_of(args, kwargs)
            entry["lists"] = shapes_of_lists(args, kwargs)
            if like is not None:
                entry["held"] = self._kept_leaves(replay.held(like["changed"]), {})
            entry["random"] = random_state()
            # Compiled replays follow eager ones, which have shown that they need nobody else.
            eager = alone(self._folder, region.number)
            with contextlib.nullcontext() if self._compiled else eager, listening():
                self._ask_all(replay, entry, begun)
        except Exception as error:  # The border: whatever a program's objects do to a replay.
            words = " ".join(str(error).split())[:300]
            entry["left_out"] = f"{type(error).__name__}: {words}"
        finally:
            if replay is not None:
                replay.restore()
                entry["shared"] = replay.arguments.shared
            self._spent += time.monotonic() - begun
            self._record["coverage"] = _described(self._coverage)
            self._record["truths"], self._record["ties"] = truths(), ties()
        return entry

    def _wanted(self, region: CompiledRegion, number: int, args: Any, kwargs: Any) -> bool:
        if self._follows:
            return (region.number, number) in self._like
        if region.number in self._collective:
            if number == 1:
                self._record["collective"].append(region.name)
            return False
        known = self._signatures.setdefault(region, set())
        signature = _signature_of(args, kwargs)
        if len(known) >= CALLS or (signature in known and number > 2):
            return False
        reason = ""
        if region.number >= REGIONS:
            reason = f"more than {REGIONS} regions"
        elif self._spent > self._seconds:
            reason = f"more than {self._seconds:g} s of replays"
        elif self._keeper.kept_bytes > _BYTES:
            reason = f"more than {_BYTES >> 30} GiB of numbers"
        if reason:
            if reason not in self._record["left_out"]:
                self._record["left_out"].append(reason)
            return False
        # A flag or another shape may lead to code that the first call never came to.
        self._is_other = signature not in known
        known.add(signature)
        return True

    def _ask_all(self, replay: Replay, entry: dict[str, Any], begun: float) -> None:
        first = entry["call"] == 1
        # A later call may be the first one that goes where the change is.
        asks_all = first or self._thorough or (self._wary and self._is_other)
        for recipe, compile_too in self._recipes(replay, entry, asks_all):
            if not replay.can(recipe):
                continue
            if recipe.kind != "recorded" and self._is_late(begun):
                entry["left_out_recipes"] = entry.get("left_out_recipes", 0) + 1
                continue
            with self._asking(entry, recipe):
                self._ask_one(replay, entry, recipe, compile_too)
        if self._compiled or self._follows:
            return
        if first:
            self._hunt(replay, entry)
        if self._thorough:
            self._ask_at_borders(replay, entry)

    def _asking(
        self, entry: dict[str, Any], recipe: InputRecipe
    ) -> contextlib.AbstractContextManager[None]:
        self._coverage.asked = (entry["region"], entry["call"], tuple(recipe))
        family = family_of(recipe)
        if not family:
            return contextlib.nullcontext()
        return asking(self._folder, FatalInputs(entry["region"], family, recipe.words()))

    def _ask_one(
        self, replay: Replay, entry: dict[str, Any], recipe: InputRecipe, compile_too: bool
    ) -> None:
        # Float64 numbers are asked for of the original alone, branches also where places are given.
        first = not (self._compiled or self._follows)
        coverage = self._coverage if first or (self._places and not self._compiled) else None
        kept = self._within(entry, recipe, lambda: replay.eagerly(recipe, coverage))
        if kept is None:
            return
        error = kept["error"]
        if error and recipe.kind in ASKED_OF_ANYBODY and not (self._follows or error["raised"]):
            return  # What the program's own code refuses is compared.
        entry["replays"].append(kept)
        if self._compiled and compile_too:
            compiled = self._within(entry, recipe, lambda: replay.compiled(recipe))
            if compiled is not None:
                entry["replays"].append(compiled)
        # Hooks that sum gradients hang on weights, and are lost where a dtype changes (torch 2.13).
        wanted = recipe.kind in _EXACT and not is_in_group()
        if first and kept["error"] is None and wanted:
            exact = replay.exactly(recipe)
            if exact is not None:
                entry["replays"].append(exact)

    def _recipes(
        self, replay: Replay, entry: dict[str, Any], first: bool
    ) -> list[tuple[InputRecipe, bool]]:
        if self._follows:
            found = self._like[entry["region"], entry["call"]]["recipes"]
            return [(InputRecipe(*recipe), bool(safe)) for recipe, safe in found]
        usual = usual_recipes(
            replay.arguments, sizes=self._sizes, first=first, thorough=self._thorough
        )
        more = replay.state_recipes() if first else []
        more += on_other_values(more) if self._thorough and replay.arguments.tensors() else []
        if first and self._wary:
            more += wary_recipes(replay.arguments, self._numbers)
            more += replay.number_recipes(self._numbers)
        fatal = self._fatal.get(entry["region"], ())
        entry["fatal"] = list(fatal)
        return [(recipe, True) for recipe in without_fatal([*usual, *more], fatal)]

    def _is_late(self, begun: float) -> bool:
        return self._spent + time.monotonic() - begun > self._seconds

    def _hunt(self, replay: Replay, entry: dict[str, Any]) -> None:
        """Look for inputs that take sides of branches which nothing took so far."""
        if not replay.arguments.tensors():
            return
        fatal = self._fatal.get(entry["region"], ())
        for recipe in without_fatal(more_recipes(replay.arguments), fatal):
            if not replay.can(recipe) or (recipe.kind == OTHER_WEIGHTS and not replay.weights):
                continue
            if not self._one_sided() or self._hunted > _HUNT_S:
                return
            begun = time.monotonic()
            seen = self._coverage.sides
            with self._asking(entry, recipe):
                self._within(entry, recipe, lambda: replay.glance(recipe, self._coverage))  # noqa: B023
                if self._coverage.sides > seen:
                    entry["replays"].append(replay.eagerly(recipe))
            self._hunted += time.monotonic() - begun

    def _ask_at_borders(self, replay: Replay, entry: dict[str, Any]) -> None:
        """Values times, or plus, what makes two sides of a comparison equal, or a little more or
        less: there `<` and `<=` differ, and a limit from one beside it."""
        fatal = self._fatal.get(entry["region"], ())
        if "values" in fatal or not any(t.is_floating_point() for t in replay.arguments.tensors()):
            return
        solved: set[Any] = set()
        for kind, start in (("border", 1.0), ("border-plus", 0.0)):
            once = self._margins(replay, entry, kind, start)
            twice = self._margins(replay, entry, kind, start + 1.0)
            for place in [each for each in once if each in twice and each not in solved]:
                if len(solved) >= _BORDERS:
                    return
                points = [(start, once[place]), (start + 1.0, twice[place])]
                found = solve_border(
                    lambda amount: self._margins(replay, entry, kind, amount).get(place),  # noqa: B023
                    points,
                )
                if found is None:
                    continue
                solved.add(place)
                border, left = found
                amounts = beside(border)
                if not left and replay.is_exact(InputRecipe(kind, amount=border)):
                    amounts.append(border)  # Where rounding decides, who is right nobody can say.
                for amount in amounts:
                    recipe = InputRecipe(kind, amount=amount)
                    with self._asking(entry, recipe):
                        kept = self._within(entry, recipe, lambda: replay.eagerly(recipe))  # noqa: B023
                        entry["replays"] += [kept] if kept is not None else []

    def _margins(
        self, replay: Replay, entry: dict[str, Any], kind: str, amount: float
    ) -> dict[Any, float]:
        """To the border of each comparison. No side of a branch counts as taken by it."""
        recipe, found = InputRecipe(kind, amount=amount), dict[Any, float]()
        known = self._taken()
        self._coverage.margins = found
        try:
            with self._asking(entry, recipe):
                self._within(entry, recipe, lambda: replay.glance(recipe, self._coverage))
        finally:
            self._coverage.margins = None
            self._forget_all_but(known)
        return {place: left for place, left in found.items() if math.isfinite(left)}

    def _taken(self) -> dict[int, set[Any]]:
        kept = [*self._coverage.branches(), *self._coverage.values()]
        return {id(branch): set(branch.taken) for _, branch in kept}

    def _forget_all_but(self, known: dict[int, set[Any]]) -> None:
        for _, branch in (*self._coverage.branches(), *self._coverage.values()):
            branch.taken.intersection_update(known.get(id(branch), ()))

    def _within(
        self, entry: dict[str, Any], recipe: InputRecipe, ask: Callable[[], _T]
    ) -> _T | None:
        """What it gives; None where it does not end on inputs that we made up. Then no side of a
        branch counts as taken that only this took."""
        begun = time.monotonic()
        made_up = recipe.kind != "recorded"
        patience = self._patience_s
        if self._follows:
            patience = max(patience, _PATIENCE_COMPILED_S)
        known = self._taken()
        try:
            with ending_within(patience if made_up else None):
                found = ask()
        except Endless:
            self._forget_all_but(known)
            entry.setdefault("endless", []).append(recipe.words())
            return None
        if recipe.kind == "recorded":
            self._patience_s = max(_PATIENCE_S, _PATIENCE * (time.monotonic() - begun))
        return found

    def _one_sided(self) -> bool:
        """Is there a branch, near what a fix may change, of which one side was never taken?"""
        near = {(file, function) for file, function in self._functions()}
        return any(
            len(branch.sides) == 1 and (branch.by_tensor or (file, branch.function) in near)
            for file, branch in (*self._coverage.branches(), *self._coverage.values())
        )

    def _functions(self) -> set[tuple[str, str]]:
        lines = set(self._places)
        return {
            (file, branch.function)
            for file, branch in (*self._coverage.branches(), *self._coverage.values())
            if (file, branch.line) in lines
        }


def _described(coverage: Coverage) -> dict[str, Any]:
    """As plain JSON values."""
    return {
        "lines": {file: sorted(lines) for file, lines in coverage.lines.items()},
        "branches": [_told(file, branch) for file, branch in coverage.branches()],
        "values": [_told(file, branch) for file, branch in coverage.values()],
    }


def _told(file: str, branch: SourceBranch) -> dict[str, Any]:
    return {
        "file": file,
        "line": branch.line,
        "column": branch.column,
        "function": branch.function,
        "sides": sorted(branch.sides),
        "by_tensor": branch.by_tensor,
        "by_none": branch.by_none,
        "takers": _takers(branch),
    }


def _takers(branch: SourceBranch) -> list[list[Any]]:
    """Who took which side; of a side that the recorded inputs took, they alone."""
    found: list[list[Any]] = []
    for side in sorted(branch.sides):
        asked = sorted(by for was, by in branch.taken if was is side)
        recorded = [by for by in asked if by and by[2][0] == RECORDED]
        found += [[side, list(by)] for by in recorded[:1] or asked]
    return found


def _forms_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, str]:
    """How numbers are handed in: a whole number's dtype, or `number` for one of Python's. Another
    version may hand in the same numbers in another form."""
    found: dict[str, str] = {}
    for path, leaf in argument_leaves(args, kwargs).items():
        if is_whole(leaf):
            found[path] = str(leaf.dtype).removeprefix("torch.")
        elif type(leaf) in (int, float):
            found[path] = "number"
    return found


def _signature_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a compiler would look at."""
    found: list[Any] = [torch.is_grad_enabled()]
    for path, leaf in argument_leaves(args, kwargs).items():
        if isinstance(leaf, torch.Tensor):
            found.append((path, tuple(leaf.shape), leaf.dtype, leaf.requires_grad))
        else:
            found.append((path, repr(leaf)[:80]))
    return tuple(found)
