"""`compilescope.verify`: two functions or modules compared in this process, for tests: on the given
inputs and on others made of them, eagerly and compiled.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time_ns
from typing import Any

import torch

from compilescope.base.errors import ToolError
from compilescope.base.version import VERSION
from compilescope.change.repair.trials.child.prober import Prober
from compilescope.change.repair.trials.losses import count_operators, losses_of
from compilescope.change.repair.trials.recorded_runs import ReplayedRun, read_record
from compilescope.change.repair.trials.replay_checks import judge_version
from compilescope.instrument.recorder.journal import MemoryJournal
from compilescope.instrument.recorder.session import recording
from compilescope.instrument.torchapi.compilation.fresh import (
    as_compiled,
    compiled_anew,
    is_compiled,
    not_compiled,
)
from compilescope.instrument.torchapi.regions import CompiledRegion, model_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.measure.diff.runs.model_state import State
from compilescope.measure.diff.runs.modes import Randomness
from compilescope.measure.tensors.copies import CopiedArguments
from compilescope.record.fix_search import Losses
from compilescope.record.header import RunHeader
from compilescope.record.home import new_run_id
from compilescope.record.run import Run

_PATIENCE_S = 600.0
"""For the replays of one set of inputs. Chosen: longer than a test may take."""
_LOST = {"failures": "failures", "eager": "eager fallbacks", "breaks": "graph breaks"}
Inputs = Sequence[Any] | Callable[[], Iterable[Any]]
Call = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class ComparedCallables:
    """What two functions or modules were compared on, and what each loses when it is compiled."""

    before: Losses
    after: Losses
    calls: int
    """Given inputs."""
    inputs: tuple[str, ...]
    """The kinds of inputs that were made of them, in words."""
    gradients: bool
    """Were gradients compared? They are where a result requires one."""
    notes: tuple[str, ...] = ()
    """What was not compared."""

    @property
    def breaks_before(self) -> int:
        return self.before.breaks

    @property
    def breaks_after(self) -> int:
        return self.after.breaks

    @property
    def recompiles_before(self) -> int:
        return self.before.recompiles

    @property
    def recompiles_after(self) -> int:
        return self.after.recompiles


def verify(
    before: Callable[..., Any],
    after: Callable[..., Any],
    inputs: Inputs,
    *,
    allow_worse: bool = False,
) -> ComparedCallables:
    """Do `before` and `after`, functions or modules, do the same? AssertionError where they do not,
    where that cannot be told, and where `after` has more graph breaks, recompiles, eager fallbacks
    or failures, unless `allow_worse`.

    `inputs` is a list with a tuple of arguments for each call, or a function that gives one; a dict
    is keyword arguments, and anything else one argument. Compared are results, gradients, changed
    arguments and module state, exceptions, printed output and random numbers, on the inputs and on
    others made of them: zeros, NaN, infinities, scaled and other values, other weights. Modules
    need the same weights. Nothing that is given is changed.

    Code that this process has compiled is dropped, before and after: it compiles again.
    """
    for function in (before, after):
        if not callable(function):
            raise ToolError(
                "verify takes two functions or modules, and the inputs to call them with."
            )
    calls = [_call_of(each) for each in (inputs() if callable(inputs) else inputs)]
    if not calls:
        raise ToolError("verify needs at least one set of inputs.")
    kinds: dict[str, None] = {}
    notes: dict[str, None] = {}
    gradients = False
    with compiled_anew():
        for number, call in enumerate(calls, 1):
            with _CallComparison(before, after, call) as comparison:
                wrong = comparison.difference()
                if wrong:
                    raise AssertionError(f"On input {number}, {wrong}.")
                kinds |= dict.fromkeys(comparison.inputs)
                notes |= dict.fromkeys(comparison.notes)
                gradients = gradients or comparison.trains
    old, new = (_losses(function, calls) for function in (before, after))
    found = ComparedCallables(old, new, len(calls), tuple(kinds), gradients, tuple(notes))
    worse = _worse(old, new)
    if worse and not allow_worse:
        raise AssertionError(f"The results are the same, but there are {worse}.")
    return found


def _call_of(given: Any) -> Call:
    if isinstance(given, tuple):
        return given, {}
    if isinstance(given, dict):
        return (), given
    return (given,), {}


class _CallComparison:
    """Of one set of inputs."""

    def __init__(self, before: Any, after: Any, call: Call) -> None:
        self._sides = (_region(before, "before"), _region(after, "after"))
        self._call = call
        self.inputs: list[str] = []
        self.notes: list[str] = []
        self.trains = False
        # An index out of range ends some processes, and this one is the user's.
        self._spared = {0: ["integers"]}

    def __enter__(self) -> _CallComparison:
        self._folder = tempfile.TemporaryDirectory(prefix="compilescope-")
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def difference(self) -> str:
        """Or why it cannot be told; empty where both do the same."""
        original = self._probed(0, compiled=False, like=None)
        for call in original.calls:
            if call["left_out"]:
                return f"the first one cannot be called again: {call['left_out']}"
            if call.get("shared"):
                return f"{', '.join(call['shared'])} cannot be copied"
            self.trains = any(replay["train"] for replay in call["replays"])
            for words in call.get("endless", ()):
                self.notes.append(f"it does not finish on {words}: skipped")
        version = self._probed(1, compiled=True, like=original)
        asked: dict[str, Any] = {
            "original": original.told,
            "version": version.told,
            "compiled": None,
            "again": None,
            "allows": [],
            "by_anyone": True,
        }
        while True:
            answer = judge_version(asked)
            needs = answer.get("needs")
            if needs is None:
                break
            again = self._probed(0, compiled=needs == "compiled", like=original)
            asked[needs] = again.told
        self.inputs += answer["inputs"]
        self.notes += answer["notes"]
        wrong = [each for each in answer["checks"] if each["verdict"] != "pass"]
        wrong.sort(key=lambda check: check["verdict"] != "fail")
        if not wrong:
            return ""
        words = str(wrong[0]["words"]).replace("the original", "the first one")
        return words if wrong[0]["verdict"] == "fail" else f"it could not be told: {words}"

    def _probed(self, side: int, *, compiled: bool, like: ReplayedRun | None) -> ReplayedRun:
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        prober = Prober(
            {
                "folder": str(folder),
                "compiled": compiled,
                "sizes": False,
                "thorough": True,
                "wary": False,
                "numbers": [],
                "seconds": _PATIENCE_S,
                "focus": [],
                "like": like.plan_without() if like is not None else None,
                "fatal": {} if like is not None else self._spared,
                "collective": [],
            }
        )
        prober.ask(self._sides[side], *self._call)
        return ReplayedRun(folder, read_record(folder))


def _region(function: Any, name: str) -> CompiledRegion:
    eager = not_compiled(function) if is_compiled(function) else function
    return CompiledRegion(_name_of(function, name), eager, as_compiled(function, {}), 0)


def _name_of(function: Any, usual: str) -> str:
    if isinstance(function, torch.nn.Module):
        return type(function).__qualname__
    return str(getattr(function, "__qualname__", usual))


def _losses(function: Any, calls: Iterable[Call]) -> Losses:
    """What all calls, one after the other, lose when it is compiled."""
    journal = MemoryJournal()
    header = RunHeader(
        run=new_run_id("verify"),
        tool=VERSION,
        cwd=os.getcwd(),
        root=os.getcwd(),
        host=socket.gethostname(),
        started_ns=time_ns(),
    )
    with compiled_anew(), recording(journal):
        compiled = as_compiled(function, {})
        for args, kwargs in calls:
            # What it raises was compared.
            with contextlib.suppress(Exception), _as_before(function, args, kwargs) as copied:
                compiled(*copied[0], **copied[1])
    run = Run(header, journal.events, journal.artifacts)
    return losses_of(digest(run), count_operators(run), distinct=True)


@contextlib.contextmanager
def _as_before(function: Any, args: Any, kwargs: Mapping[str, Any]) -> Iterator[Call]:
    """Copies of the arguments; state and random numbers are then as they were."""
    randomness = Randomness()
    state = State(model_of(function), (args, kwargs))
    try:
        yield CopiedArguments(args, dict(kwargs), state.own).copied()
    finally:
        state.restore()
        randomness.restore()


def _worse(old: Losses, new: Losses) -> str:
    found = [
        f"{getattr(old, name)} -> {getattr(new, name)} {words}"
        for name, words in _LOST.items()
        if getattr(new, name) > getattr(old, name)
    ]
    if new.avoidable > old.avoidable:
        found.append(f"{old.avoidable} -> {new.avoidable} avoidable recompiles")
    return ", ".join(found)
