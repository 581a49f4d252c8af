"""What a worker does when it is asked: check names, build a model, call it, time it, examine it.

Times are taken by torch.utils.benchmark; on a GPU by its own clock.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import psutil
import torch
from torch.utils.benchmark import Timer

from compilescope.backends.mini.library import build_library
from compilescope.base.processes.deadline import clock
from compilescope.base.settings import read_mini_settings
from compilescope.instrument.torchapi.allocations import peak_bytes
from compilescope.instrument.torchapi.trials.backends import find_backend
from compilescope.measure.bench.model import PreparedModel, find_model, prepared, unavailable
from compilescope.measure.bench.preparation import backend_for, check_device, find_dtype
from compilescope.measure.bench.protocol import (
    EAGER,
    BuiltReply,
    Examination,
    FirstCall,
    MachineSurvey,
    PeakMemory,
    RunTime,
    Spec,
    WarmUp,
    WorkerRequest,
)
from compilescope.measure.machine import this_machine
from compilescope.record.benchmark import Machine

LEAST_S = 0.1
"""A run takes at least this long. Chosen: neither the clock nor the loop shows in it."""
LEAST_CUDA_S = 0.2
"""On a GPU, where a call of a few milliseconds is mostly the host's launching of kernels: one delay
of the host more or less would be a good part of a short run. Chosen."""


class CudaClock:
    """Seconds by the events of a CUDA device.

    Between two events their distance is a 32-bit float of milliseconds: read against one event at
    the start of all, a millisecond would be lost after some hours. So neighbours are added up.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._last = self._event()

    def __call__(self) -> float:
        now = self._event()
        self._seconds += self._last.elapsed_time(now) / 1000
        self._last = now
        return self._seconds

    @staticmethod
    def _event() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        event.synchronize()
        return event


def once(step: Callable[[], Any], device: str) -> float:
    """Seconds of one call, whatever it has to compile."""
    wait_for(device)
    begun = clock()
    step()
    wait_for(device)
    return clock() - begun


def warm_up(step: Callable[[], Any], device: str, times: int) -> int:
    """How many calls a run is made of."""
    seconds = [once(step, device) for _ in range(times)]
    # Of the later ones: CUDA graphs are recorded in the second call.
    usual = statistics.median(seconds[len(seconds) // 2 :])
    least = LEAST_CUDA_S if is_cuda(device) else LEAST_S
    return max(1, math.ceil(least / max(usual, 1e-7)))


def timer_for(step: Callable[[], Any], device: str) -> Timer:
    own: dict[str, Any] = {"timer": CudaClock()} if is_cuda(device) else {}
    return Timer("step()", globals={"step": step}, num_threads=torch.get_num_threads(), **own)


def run_ms(timer: Timer, calls: int) -> float:
    """Milliseconds a call. Timer makes two calls before it looks at the clock, which bring back
    what the other processes drove out of the caches."""
    return float(timer.timeit(calls).mean) * 1000


def wait_for(device: str) -> None:
    if is_cuda(device):
        torch.cuda.synchronize()


def is_cuda(device: str) -> bool:
    return str(torch.device(device).type) == "cuda"


_CONTEXT_BYTES = 600 << 20
"""That a process takes of a GPU beyond its tensors. Chosen, not measured: a bound for CUDA's
context and libraries."""


class WorkerTasks:
    """One model on one backend, from being built to being measured."""

    def __init__(self) -> None:
        self._model: PreparedModel | None = None
        self._timer: Timer | None = None
        self._calls = 1

    def do(self, request: WorkerRequest) -> Any:
        if request.verb == "survey":
            return survey(request.specs)
        if request.verb == "prepare":
            return self._prepare(request.specs[0])
        if request.verb == "examine":
            return _examine(request.specs[0])
        model = self._model
        assert model is not None  # `prepare` comes first.
        spec = model.spec
        if request.verb == "first":
            return _first(model)
        if request.verb == "warm":
            self._calls = warm_up(model.step, spec.device, spec.warmup)
            self._timer = timer_for(model.step, spec.device)
            return WarmUp(calls=self._calls)
        if request.verb == "memory":
            return PeakMemory(bytes=_peak(model))
        assert self._timer is not None  # `warm` comes before `run`.
        return RunTime(ms=run_ms(self._timer, self._calls))

    def _prepare(self, spec: Spec) -> BuiltReply:
        _use_threads(spec)
        if is_cuda(spec.device) and torch.device(spec.device).index is not None:
            # Clock, waiting and memory figures are the current device's.
            torch.cuda.set_device(spec.device)
        plain = prepared(spec)
        self._model = plain.compiled(spec.backend, spec.compile_mode)
        return BuiltReply(parameters=plain.parameters, batch=plain.batch)


def survey(specs: tuple[Spec, ...]) -> MachineSurvey:
    """Every name is looked up before anything is built."""
    missing: dict[str, str] = {}
    for spec in specs:
        find_dtype(spec.dtype)
        check_device(spec.device)
        reason = unavailable(find_model(spec.model))
        if reason:
            missing[spec.model] = reason
    for backend, constraints in {(spec.backend, spec.constraints) for spec in specs}:
        _check_backend(backend, constraints)
    _use_threads(specs[0])
    return MachineSurvey(machine=_machine(), unavailable=missing)


def _check_backend(name: str, constraints: str) -> None:
    if constraints:
        backend_for("mock", constraints)
    if name == EAGER:
        return
    found = backend_for(name, constraints)
    find_backend(found)
    if found == "compilescope_mini":
        # It builds its own library once on each machine, which is no part of a compile time.
        build_library(read_mini_settings().compiler)


def _machine() -> Machine:
    found = this_machine()
    names = tuple(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))
    return msgspec.structs.replace(
        found,
        threads=torch.get_num_threads(),
        torch=str(torch.__version__),
        accelerators=names or found.accelerators,
    )


def _use_threads(spec: Spec) -> None:
    if spec.threads is not None:
        torch.set_num_threads(spec.threads)


def _first(model: PreparedModel) -> FirstCall:
    device = model.spec.device
    seconds = once(model.step, device)
    resident = int(psutil.Process().memory_info().rss)
    if not is_cuda(device):
        return FirstCall(seconds=seconds, resident_bytes=resident)
    return FirstCall(
        seconds=seconds,
        resident_bytes=resident,
        device_bytes=torch.cuda.memory_reserved() + _CONTEXT_BYTES,
        device_free_bytes=torch.cuda.mem_get_info()[0],
    )


def _peak(model: PreparedModel) -> int:
    """Weights and inputs included."""
    if is_cuda(model.spec.device):
        wait_for(model.spec.device)
        torch.cuda.reset_peak_memory_stats()
        model.step()
        wait_for(model.spec.device)
        return int(torch.cuda.max_memory_allocated())
    return _held(model) + peak_bytes(model.step)


def _held(model: PreparedModel) -> int:
    """Bytes of all that is there before a call; what shares its memory counts once."""
    tensors = [*model.model.parameters(), *model.model.buffers()]
    tensors += _tensors((model.args, model.kwargs))
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)


def _examine(spec: Spec) -> Examination:
    # Imported here: measuring must not pay for what examining needs.
    from compilescope.measure.bench.examination import examine

    _use_threads(spec)
    return examine(spec)
