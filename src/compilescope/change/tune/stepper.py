"""Stands at the marks of a program's step, and runs it in turns as the other side asks.

Up to the steady state the program runs as it is; what its first steps computed is kept. From then
on it waits at a mark, is told how many steps to take, says how long they took, and waits again.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import functools
import gc
import json
import os
import resource
import sys
import threading
import time
import weakref
from collections import Counter
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import torch

from compilescope.base.processes.channel import Channel
from compilescope.base.settings import env_rank, is_rank, read_trial
from compilescope.change.tune.call_results import CallResults
from compilescope.change.tune.counted_rounds import CountedPlace, way_to
from compilescope.change.tune.kept_tensors import (
    MOST_ITEMS,
    attributes_of,
    keep_tensors,
    variables_around,
    widen_before_buckets,
    widen_weights,
)
from compilescope.change.tune.ranks import RankHub, call_hub
from compilescope.change.tune.step_place import MARK
from compilescope.instrument.torchapi.compilation.fresh import CompilationClock
from compilescope.instrument.torchapi.matmul_precision import matmul_precision

_TORCH = os.path.dirname(torch.__file__) + os.sep
_REPEATED = 3
"""Blocks of one class in a row. Chosen: with two there is nothing to win by compiling one."""
KEPT_STEPS = 2
"""Whose numbers are kept. Chosen: the first shows what is computed, the second what the first left
behind; with each further one rounding errors of training grow."""
_QUIET = 4
"""Steps without a compilation after which a program is settled. Chosen: CUDA graphs warm up in the
second call after the compilation and record in the third."""
_MOST_COUNTED = 20_000
"""Marks. Chosen: a bound for a program without an end."""


def begin(given: dict[str, Any]) -> None:
    """torch has just been imported, nothing of the program's has been compiled."""
    trial = read_trial()
    assert trial is not None
    place = trial.parent
    launched = bool(given["launched"])
    if launched and not is_rank():
        RankHub(Channel.given(int(given["channel"])), place).start()
        return
    mark: Any = _pass_by
    try:
        (place / f"steps-{env_rank()}").mkdir()
        channel = call_hub(place) if launched else Channel.given(int(given["channel"]))
    except OSError:
        pass  # A process that the program's own has started, such as a loader's worker.
    else:
        stepper = {"count": _Counter, "exact": _Exact, "turns": _Turns}[given["mode"]]
        mark = stepper(given, channel).mark
    if given["mode"] == "count":
        mark = _eager_only(mark)
    setattr(builtins, MARK, mark)


def _eager_only(mark: Any) -> Any:
    """Some of the loops that are counted are in compiled code, where Dynamo makes nothing of this:
    a graph break would end a program that forbids them."""
    counted = torch.compiler.disable(mark)

    def pass_by(number: int = 0) -> None:
        if not torch.compiler.is_compiling():
            counted(number)

    return pass_by


def _pass_by(number: int = 0) -> None:
    pass


def _caller() -> FrameType:
    """The frame that a mark is in, whatever torch has put between."""
    frame = sys._getframe(2)
    while MARK not in frame.f_code.co_names and frame.f_back is not None:
        frame = frame.f_back
    return frame


class _Marks:
    """What all of them have in common: a folder, a channel, and one process that speaks."""

    def __init__(self, given: dict[str, Any], channel: Channel) -> None:
        self.folder = Path(given["folder"])
        self.pid = os.getpid()
        self._threads: dict[int, int] = {}
        self.is_rank = bool(given["launched"])
        if self.is_rank:
            self.folder /= f"rank-{env_rank()}"
            self.folder.mkdir(exist_ok=True)
        self._channel = channel
        self._telling = threading.Lock()
        atexit.register(self._end)

    def mark(self, number: int = 0, way: int = 0) -> None:
        """`way`: only what comes by this one is a step; 0: whatever does."""
        thread = threading.get_ident()
        # Of several threads that pass a place, the first one's rounds are its steps.
        if os.getpid() == self.pid and self._threads.setdefault(number, thread) == thread:
            frame = _caller()
            if not way or way_to(frame) == way:
                self.step(number, frame)

    def step(self, number: int, frame: FrameType) -> None:
        raise NotImplementedError

    def tell(self, **news: Any) -> None:
        try:
            with self._telling:
                self._channel.send(json.dumps(news).encode())
        except OSError:
            os._exit(0)

    def hear(self) -> dict[str, Any]:
        asked = self._channel.receive()
        if not asked:
            os._exit(0)  # Nobody waits for this process any more.
        found: dict[str, Any] = json.loads(asked)
        return found

    def leave(self) -> None:
        """After the last word. A rank stays until all have said theirs: some may still need it."""
        if self.is_rank:
            threading.Event().wait()
        os._exit(0)

    def _end(self) -> None:
        if os.getpid() == self.pid:
            self.tell(kind="ended")


class _Counter(_Marks):
    """How often each place is passed."""

    def __init__(self, given: dict[str, Any], channel: Channel) -> None:
        super().__init__(given, channel)
        self._places = [CountedPlace() for _ in range(int(given["places"]))]
        self._marks = 0
        self._seconds = float(given["seconds"])
        self._clock = CompilationClock()
        self._clock.install()
        self._evidence = _Evidence()
        self._clock.at_begin = self._evidence.note_modes
        self._until = 0.0
        self._compilations = -1
        self._quiet = self._waited = 0
        if self.is_rank:
            threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        """Another rank has counted enough. This one may wait for it within a step."""
        self.hear()
        self._tell(ended=False)

    def step(self, number: int, frame: FrameType) -> None:
        now = time.perf_counter()
        way = self._places[number].pass_by(frame, self._clock.count, now)
        self._marks += 1
        if self._compilations != self._clock.count:
            self._compilations, self._until = self._clock.count, now + self._seconds
            self._quiet = self._waited = 0
        elif self._clock.count and _on_cuda():
            self._quiet += 1
            self._waited += torch.cuda.current_stream().query()
        if way.rounds <= 1 + KEPT_STEPS:
            way.facts = _facts_around(frame, self._evidence)
        if self._marks >= _MOST_COUNTED or (self._clock.count and now > self._until):
            self._tell(ended=False)
            self.leave()

    def _tell(self, *, ended: bool) -> None:
        waited = self._waited / self._quiet if self._quiet else None
        every = self._evidence.facts | {"gpu_waited": waited}
        self.tell(
            kind="counted",
            rounds=[place.told for place in self._places],
            facts=[place.facts | every for place in self._places],
            ended=ended,
        )

    def _end(self) -> None:
        if os.getpid() == self.pid:
            self._tell(ended=True)


class _Exact(_Marks):
    """The first steps, eagerly, in float64 unless asked otherwise."""

    def __init__(self, given: dict[str, Any], channel: Channel) -> None:
        super().__init__(given, channel)
        from compilescope.instrument.torchapi.trials.reruns import Widening

        self._marks = 0
        self._widens = bool(given["widens"])
        if self._widens and self.is_rank:
            widen_before_buckets()
        self._mode: Any = Widening() if self._widens else contextlib.nullcontext()
        self._results = CallResults()
        torch.compiler.set_stance("force_eager")

    def step(self, number: int, frame: FrameType) -> None:
        if self._marks:
            self._mode.__exit__(None, None, None)
            keep_tensors(frame, self.folder / f"step-{self._marks}.pt", self._results.take())
        else:
            self._results.take()
            if self._widens:
                widen_weights(frame)
        if self._marks == KEPT_STEPS:
            self.tell(kind="kept", steps=self._marks)
            self.leave()
        self._marks += 1
        self._mode.__enter__()


class _Turns(_Marks):
    """Runs up to the steady state, and then as it is told."""

    def __init__(self, given: dict[str, Any], channel: Channel) -> None:
        super().__init__(given, channel)
        self._clock = CompilationClock()
        self._clock.install()
        self._marks = 0
        self._quiet = 0
        self._compilations = 0
        self._last = 0.0
        self._warm: list[float] = []
        self._left = 0
        self._steps = 0
        self._begun = 0.0
        self._settled = False
        self._only_numbers = bool(given.get("only_numbers"))
        # What is measured is left as it is.
        self._results = CallResults() if self._only_numbers else None

    def step(self, number: int, frame: FrameType) -> None:
        if self._settled:
            self._left -= 1
            if self._left <= 0:
                self._turn_ended()
            return
        self._settle(frame)

    def _settle(self, frame: FrameType) -> None:
        _synchronize()
        now = time.perf_counter()
        if self._marks:
            self._warm.append(now - self._last)
            if self._marks <= KEPT_STEPS:
                returned = self._results.take() if self._results is not None else {}
                keep_tensors(frame, self.folder / f"step-{self._marks}.pt", returned)
        elif self._results is not None:
            self._results.take()
        if self._only_numbers and self._marks == KEPT_STEPS:
            self.tell(kind="kept", steps=self._marks)
            self.leave()
        same = self._marks and self._clock.count == self._compilations
        self._quiet = self._quiet + 1 if same else 0
        self._compilations = self._clock.count
        if not self._marks:
            self._before_s = self._clock.seconds
        self._marks += 1
        self._last = time.perf_counter()
        if self._quiet >= _QUIET and self._marks > KEPT_STEPS + 1:
            self._ready()
        elif self.is_rank:
            self.tell(kind="settling")
            self.hear()

    def _ready(self) -> None:
        _reset_peak()
        steady = sorted(self._warm[-_QUIET:])[_QUIET // 2]
        # What the first steps took beyond steady ones: compiling, autotuning, recording graphs.
        extra = sum(each - steady for each in self._warm)
        self.tell(
            kind="ready",
            steps=len(self._warm),
            steady_ms=steady * 1000,
            compile_s=max(0.0, self._before_s + extra),
            compilations=self._clock.count,
        )
        self._wait()

    def _turn_ended(self) -> None:
        _synchronize()
        seconds = time.perf_counter() - self._begun
        self.tell(
            kind="turn",
            ms=seconds * 1000 / self._steps,
            steps=self._steps,
            compilations=self._clock.count,
            memory=_peak(),
        )
        self._wait()

    def _wait(self) -> None:
        self._steps = self._left = int(self.hear()["steps"])
        self._settled = bool(self._steps)  # 0: another rank has not settled.
        _synchronize()
        self._begun = time.perf_counter()


# What candidates ask about a program before they are tried, read from its objects in a step.


def _on_cuda() -> bool:
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def _synchronize() -> None:
    if _on_cuda():
        torch.cuda.synchronize()


def _reset_peak() -> None:
    if _on_cuda():
        torch.cuda.reset_peak_memory_stats()


def _peak() -> int:
    """On a GPU what torch took of its memory; else the most that this process ever had."""
    if _on_cuda():
        return int(torch.cuda.max_memory_reserved())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class _Evidence:
    """What is seen while the program runs, whoever's code does it."""

    def __init__(self) -> None:
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._modes: Counter[str] = Counter()
        make, known = torch.optim.Optimizer.__init__, self._optimizers

        @functools.wraps(make)
        def note(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            known.add(optimizer)
            make(optimizer, *args, **kwargs)

        torch.optim.Optimizer.__init__ = note

    def note_modes(self) -> None:
        """Those in which something is compiled: of a step, the modes within count."""
        self._modes["all"] += 1
        self._modes["grad_enabled"] += torch.is_grad_enabled()
        self._modes["autocast"] += _autocasts()

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Not those around another, which is the one that counts."""
        return [
            each
            for each in self._optimizers
            if not isinstance(getattr(each, "optimizer", None), torch.optim.Optimizer)
        ]

    @property
    def facts(self) -> dict[str, Any]:
        """Of the whole program."""
        if not self._modes["all"]:
            return {}
        return {name: bool(self._modes[name]) for name in ("grad_enabled", "autocast")}


def _autocasts() -> bool:
    return any(torch.is_autocast_enabled(kind) for kind in ("cuda", "cpu"))


def _facts_around(frame: FrameType, evidence: _Evidence) -> dict[str, Any]:
    """Plain JSON."""
    values = list(variables_around(frame, libraries=True).values())
    values += [each for value in values for each in _parts(value)]
    modules = [each for each in values if isinstance(each, torch.nn.Module)] or _live_modules()
    optimizers = evidence.optimizers
    parameters = {id(p): p for module in modules for p in module.parameters()}
    for optimizer in optimizers:
        parameters |= {id(p): p for group in optimizer.param_groups for p in group["params"]}
    held = [*parameters.values(), *(each for each in values if isinstance(each, torch.Tensor))]
    return {
        "devices": sorted({tensor.device.type for tensor in held}),
        "dtypes": sorted({str(t.dtype) for t in parameters.values()}),
        "trains": bool(optimizers) or any(p.grad is not None for p in parameters.values()),
        "grad_enabled": torch.is_grad_enabled(),
        "optimizers": [_optimizer(each) for each in optimizers],
        "convolutions": sum(_convolutions(module) for module in _outermost(modules)),
        "blocks": _blocks(modules),
        "matmul_precision": matmul_precision(),
        "autocast": _autocasts(),
        "bf16": _has_bf16(),
        "cache_artifacts": hasattr(torch.compiler, "save_cache_artifacts")
        and hasattr(torch.compiler, "load_cache_artifacts"),
        "capability": list(torch.cuda.get_device_capability()) if _on_cuda() else None,
        "device_name": torch.cuda.get_device_name() if _on_cuda() else "",
    }


def _live_modules() -> list[torch.nn.Module]:
    """Where no variable around the step holds one."""
    return [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]


def _parts(value: Any) -> list[Any]:
    """What a container or an object of the program, or of a library that it uses, holds."""
    if isinstance(value, (list, tuple)) and len(value) <= MOST_ITEMS:
        return list(value)
    if isinstance(value, dict) and len(value) <= MOST_ITEMS:
        return list(value.values())
    if isinstance(value, (type, ModuleType, torch.nn.Module, torch.Tensor)):
        return []
    return list(attributes_of(value).values())


def _has_bf16() -> bool:
    return bool(torch.cuda.is_bf16_supported()) if _on_cuda() else True


def _optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    group = optimizer.param_groups[0]
    return {
        "class": type(optimizer).__name__,
        "has_fused": "fused" in group,
        "is_fused": bool(group.get("fused")),
        "has_foreach": "foreach" in group,
    }


def _outermost(modules: list[torch.nn.Module]) -> list[torch.nn.Module]:
    inner = {id(child) for module in modules for child in list(module.modules())[1:]}
    return list({id(m): m for m in modules if id(m) not in inner}.values())


def _convolutions(module: torch.nn.Module) -> int:
    return sum(isinstance(each, torch.nn.Conv2d) for each in module.modules())


def _blocks(modules: list[torch.nn.Module]) -> list[dict[str, Any]]:
    """Lists of blocks of one class: the name of the class, how many, and where they are."""
    found: dict[str, dict[str, Any]] = {}
    for module in _outermost(modules):
        for name, each in module.named_modules():
            if not isinstance(each, (torch.nn.ModuleList, torch.nn.Sequential)):
                continue
            kinds = Counter(type(child).__name__ for child in each.children())
            kind, count = kinds.most_common(1)[0] if kinds else ("", 0)
            if count >= _REPEATED and count == len(each):
                path = name.replace("_orig_mod.", "").removeprefix("_orig_mod")
                found.setdefault(path, {"path": path, "class": kind, "count": count})
    return list(found.values())
