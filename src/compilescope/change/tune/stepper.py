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
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import torch

from compilescope.base.processes.channel import Channel
from compilescope.change.tune.counted_rounds import CountedPlace, way_to
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
    stepper = {"count": _Counter, "exact": _Exact, "turns": _Turns}[given["mode"]](given)
    mark: Any = stepper.mark
    if given["mode"] == "count":
        # Some of these loops may be in compiled code, where it must run as it is, too.
        mark = torch.compiler.disable(mark)
    setattr(builtins, MARK, mark)


def _caller() -> FrameType:
    """The frame that a mark is in, whatever torch has put between."""
    frame = sys._getframe(2)
    while MARK not in frame.f_code.co_names and frame.f_back is not None:
        frame = frame.f_back
    return frame


class _Marks:
    """What all of them have in common: a folder, a channel, and one process that speaks."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.folder = Path(given["folder"])
        self.pid = os.getpid()
        self._threads: dict[int, int] = {}
        self._channel = Channel.given(int(given["channel"]))
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
            self._channel.send(json.dumps(news).encode())
        except OSError:
            os._exit(0)

    def hear(self) -> dict[str, Any]:
        asked = self._channel.receive()
        if not asked:
            os._exit(0)  # Nobody waits for this process any more.
        found: dict[str, Any] = json.loads(asked)
        return found

    def _end(self) -> None:
        if os.getpid() == self.pid:
            self.tell(kind="ended")


class _Counter(_Marks):
    """How often each place is passed."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
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
            os._exit(0)

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
    """The first steps, eagerly and in float64."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
        from compilescope.instrument.torchapi.trials.reruns import Widening

        self._marks = 0
        self._mode: Any = Widening()
        torch.compiler.set_stance("force_eager")

    def step(self, number: int, frame: FrameType) -> None:
        if self._marks:
            self._mode.__exit__(None, None, None)
            _keep_tensors(frame, self.folder / f"step-{self._marks}.pt")
        else:
            _widen_weights(frame)
        if self._marks == KEPT_STEPS:
            self.tell(kind="kept", steps=self._marks)
            os._exit(0)
        self._marks += 1
        self._mode.__enter__()


class _Turns(_Marks):
    """Runs up to the steady state, and then as it is told."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
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
                _keep_tensors(frame, self.folder / f"step-{self._marks}.pt")
        if self._only_numbers and self._marks == KEPT_STEPS:
            self.tell(kind="kept", steps=self._marks)
            os._exit(0)
        same = self._marks and self._clock.count == self._compilations
        self._quiet = self._quiet + 1 if same else 0
        self._compilations = self._clock.count
        if not self._marks:
            self._before_s = self._clock.seconds
        self._marks += 1
        if self._quiet >= _QUIET and self._marks > KEPT_STEPS + 1:
            self._ready()
            return
        self._last = time.perf_counter()

    def _ready(self) -> None:
        self._settled = True
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
        asked = self.hear()
        self._steps = self._left = int(asked["steps"])
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
    values = list(_variables_around(frame, libraries=True).values())
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
    if isinstance(value, (list, tuple)) and len(value) <= _MOST_ITEMS:
        return list(value)
    if isinstance(value, dict) and len(value) <= _MOST_ITEMS:
        return list(value.values())
    if isinstance(value, (type, ModuleType, torch.nn.Module, torch.Tensor)):
        return []
    return list(_attributes(value).values())


def _attributes(value: Any) -> dict[str, Any]:
    held: Any = None
    with contextlib.suppress(Exception):  # The object's own code may answer, with anything.
        held = value.__dict__
    return dict(held) if isinstance(held, dict) else {}


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


_MOST_EACH = 1 << 20
"""Numbers of one tensor that are kept: of a larger one as many, evenly spread. Chosen: 4 MiB of
float32."""
_MOST_ALL = 1 << 25
"""Numbers of all tensors. Chosen: 128 MiB of float32, which a disk takes in a second."""
_MOST_ITEMS = 64
"""Of one container. Chosen: a batch has a few tensors; a dataset in a list is not the step's."""
_DEEPEST = 2
"""Containers and objects within a variable. Chosen: `batch["x"]` and `trainer.state.loss`; deeper
ones hold what the step works with, not what it computed."""
_WRAPPED = "_orig_mod."
"""What `torch.compile(module)` puts into the names of parameters."""


def _variables_around(frame: FrameType, *, libraries: bool = False) -> dict[str, Any]:
    """Of the frame and those that called it, the nearest counts."""
    apart = _TORCH if libraries else "site-packages"
    found: dict[str, Any] = {}
    here: FrameType | None = frame
    while here is not None:
        if apart not in here.f_code.co_filename:
            for name, value in list(here.f_locals.items()):
                if not name.startswith("__"):
                    found.setdefault(name, value)
        here = here.f_back
    return found


def _tensors_around(frame: FrameType) -> dict[str, torch.Tensor]:
    """By where they are found, each once: `loss`, `model.layers.0.weight`, its gradient."""
    found: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, value in _variables_around(frame).items():
        for path, tensor in _walk(value, name, 0):
            if id(tensor) not in seen and _is_comparable(tensor):
                seen.add(id(tensor))
                found.setdefault(path.replace(_WRAPPED, ""), tensor)
    return found


def _keep_tensors(frame: FrameType, file: Path) -> None:
    tensors = _tensors_around(frame)
    most = max(1024, min(_MOST_EACH, _MOST_ALL // max(1, len(tensors))))
    kept = {}
    for path, tensor in tensors.items():
        # A result that a CUDA graph has overwritten since cannot be read any more.
        with contextlib.suppress(RuntimeError), torch.no_grad():
            kept[path] = _spread(tensor.detach(), most).cpu()
    part = file.with_suffix(".part")
    torch.save(kept, part)
    part.replace(file)


def _widen_weights(frame: FrameType) -> None:
    """What gradients are computed for becomes float64, in place: autograd wants them alike."""
    for tensor in _tensors_around(frame).values():
        if tensor.is_leaf and tensor.is_floating_point() and tensor.requires_grad:
            tensor.data = tensor.data.double()
            tensor.grad = None if tensor.grad is None else tensor.grad.double()


def _spread(tensor: torch.Tensor, most: int) -> torch.Tensor:
    count = tensor.numel()
    if count <= most:
        return tensor.clone()
    return tensor.reshape(-1)[:: -(-count // most)].clone()


def _is_comparable(tensor: torch.Tensor) -> bool:
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return plain and tensor.layout is torch.strided and not tensor.is_quantized


def _walk(value: Any, path: str, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield path, value
        if value.is_leaf and value.grad is not None:
            yield f"gradient of {path}", value.grad
    elif isinstance(value, torch.optim.Optimizer):
        for place, group in enumerate(value.param_groups):
            for number, parameter in enumerate(group["params"]):
                yield from _walk(parameter, f"{path}[{place}][{number}]", depth)
    elif isinstance(value, torch.nn.Module):
        for name, parameter in value.named_parameters():
            yield from _walk(parameter, f"{path}.{name}", depth)
        for name, buffer in value.named_buffers():
            yield f"{path}.{name}", buffer
    elif depth < _DEEPEST and isinstance(value, Mapping) and len(value) <= _MOST_ITEMS:
        for key, each in list(value.items()):
            yield from _walk(each, f"{path}[{key!r}]", depth + 1)
    elif depth < _DEEPEST and isinstance(value, (list, tuple)) and len(value) <= _MOST_ITEMS:
        for number, each in enumerate(value):
            yield from _walk(each, f"{path}[{number}]", depth + 1)
    elif depth < _DEEPEST and _is_plain_object(value):
        for name, each in list(vars(value).items())[:_MOST_ITEMS]:
            yield from _walk(each, f"{path}.{name}", depth + 1)
    elif depth < _DEEPEST and not isinstance(value, (type, ModuleType)):
        # A library's trainer: what it trains is the program's, whatever else it holds.
        for name, each in _attributes(value).items():
            if isinstance(each, (torch.nn.Module, torch.optim.Optimizer)):
                yield from _walk(each, f"{path}.{name}", depth + 1)


def _is_plain_object(value: Any) -> bool:
    """Of the user's own: a trainer, a state."""
    module = type(value).__module__.partition(".")[0]
    return hasattr(value, "__dict__") and not isinstance(value, type) and module == "__main__"
