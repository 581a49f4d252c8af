"""What a step would take without a cause: host and device played again, on made-up times and on
recorded ones."""

from __future__ import annotations

import random

import pytest

from compilescope.knowledge.profiles.calls import CallPlace, HostLine, StepPlaces, UserLine
from compilescope.knowledge.profiles.causes import causes_of
from compilescope.knowledge.profiles.kernel_rows import Roof
from compilescope.knowledge.profiles.replay import StepReplay
from compilescope.knowledge.profiles.trace import STEP, Trace, TraceSpan
from profiles.machine import Do, Machine
from profiles.traces import STEP_US, host, kernel, launch, one_step, recorded

LINE = UserLine("/train.py", 12, "step")
ITEM = CallPlace("aten::item", LINE)


def _saved(
    trace: Trace, *calls: CallPlace, precision: str = "high", roof: Roof | None = None
) -> dict[str, float]:
    """What each cause saves of a steady step, the first one first."""
    places = StepPlaces(list(calls))
    step_us = StepReplay(trace).step_us
    found = causes_of(trace, places, step_us, precision, roof)
    return {cause.cause: round(cause.saves_us, 3) for cause in found}


def _graph(start: float, end: float) -> TraceSpan:
    return host("## Call CompiledFxGraph x ##", start, end)


def _read(at: float, until: float) -> list[TraceSpan]:
    """A number is read, and waited for."""
    wait = host("cudaStreamSynchronize", at, until, "cuda_runtime", 99)
    return [host("aten::item", at, until), wait]


def _dry(first: float, second: float = 30) -> Trace:
    """The host needs 31 for its way to each of two kernels, and waits for the first one."""
    done = 31 + first
    return one_step(
        _graph(0, 31), launch(30, 1), kernel("triton_a", 31, done, 1),
        *_read(31, done),
        _graph(done, done + 31), launch(done + 30, 2),
        kernel("triton_b", done + 31, done + 31 + second, 2), end=done + 31,
    )  # fmt: skip


def test_a_wait_that_lets_the_queue_run_dry_costs_the_launches_after_it() -> None:
    # The host takes 31, 100 and 31, while the second kernel runs beside the next step. Without the
    # wait the device is what takes its time: 100, 30, and from a kernel to the next 1.
    assert StepReplay(_dry(100)).step_us == 162
    assert _saved(_dry(100), ITEM) == {"sync": 162 - 132, "launches": 162 - 132}


def test_two_causes_whose_order_turns_around() -> None:
    # A short kernel: without the wait the host takes 62, without its way to the launches the device
    # 42. With the wait or not, there is no more to save.
    assert StepReplay(_dry(10)).step_us == 72
    assert _saved(_dry(10), ITEM) == {"launches": 72 - 42, "sync": 72 - 62}


def test_a_wait_with_a_full_queue_saves_nothing() -> None:
    """The host waits for the first kernel, while the second one is queued."""
    trace = one_step(
        _graph(0, 4), launch(1, 1), kernel("triton_a", 2, 100, 1),
        launch(3, 2), kernel("triton_b", 101, 401, 2), *_read(4, 100), end=101,
    )  # fmt: skip
    assert StepReplay(trace).step_us == 400
    assert _saved(trace, ITEM) == {}


def test_what_the_host_does_while_the_device_is_busy_saves_nothing() -> None:
    def trace(kernel_us: float) -> Trace:
        return one_step(
            _graph(0, 11), launch(10, 1), kernel("triton_a", 11, 11 + kernel_us, 1),
            host("aten::add", 12, 52), launch(50, 2), end=52,
        )  # fmt: skip

    add = CallPlace("aten::add", LINE)
    assert _saved(trace(500), add) == {}
    assert _saved(trace(20), add) == {"uncompiled": 52 - 21, "launches": 11}


def test_a_host_that_starves_is_what_counts() -> None:
    """A loader of 60, a kernel of 20 that computes in float64: without the one a step takes what
    the other does, without the other as long as before."""
    loader = host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 60)
    trace = one_step(
        loader, host("aten::mul", 60, 65), launch(62, 1), kernel("at::native::mul", 64, 84, 1),
        end=65,
    )  # fmt: skip
    place = CallPlace("aten::mul", LINE, dtypes=("float64",))
    assert _saved(trace, place) == {"data": 65 - 21, "uncompiled": 5, "float64": 0}


@pytest.mark.parametrize(
    ("device", "dtype", "precision", "cause", "left"),
    [
        ("at::native::mul", "float64", "high", "float64", 0.5),  # Half of the bytes.
        ("cutlass_d884gemm", "float64", "high", "float64", 5e13 / 4e14),
        ("cutlass_d884gemm", "float64", "highest", "float64", 1.0),  # As fast in float32.
        ("gemm_f32f32_f32f32", "float32", "highest", "tf32", 5e13 / 4e14),
    ],
)
def test_another_precision_leaves_some_of_a_kernel(
    device: str, dtype: str, precision: str, cause: str, left: float
) -> None:
    trace = one_step(
        host("aten::mm", 0, 5), launch(1, 1), kernel(device, 3, 1003, 1), end=5
    )  # fmt: skip
    hopper = Trace(trace.host, trace.device, trace.steps, [{"computeMajor": 9}])
    roof = Roof(4e12, {"float32": 5e13, "tf32": 4e14, "float64": 5e13})
    place = CallPlace("aten::mm", LINE, dtypes=(dtype,), flops=1e9)
    found = _saved(hopper, place, precision=precision, roof=roof)
    assert found[cause] == pytest.approx(1000 * (1 - left))


def test_operators_one_by_one_leave_one_kernel_and_products_stay() -> None:
    spans = [host("aten::mm", 0, 2), launch(1, 1), kernel("sm90_gemm", 3, 203, 1)]
    for index, us in enumerate((100, 300, 200)):
        at = 10 + 10 * index
        start = 203 + sum((100, 300, 200)[:index])
        spans += [
            host("aten::tanh", at, at + 5), launch(at + 1, 2 + index),
            kernel("at::native::tanh", start, start + us, 2 + index),
        ]  # fmt: skip
    found = _saved(
        one_step(*spans, end=40), *[CallPlace(n, LINE) for n in ("aten::mm", "aten::tanh")]
    )
    assert found == {"uncompiled": 300}


def test_a_launch_that_waits_for_room_in_the_queue_is_no_work_of_the_host() -> None:
    """A quicker device would let it go earlier: the copy is what the step takes long for."""
    spans = [
        host(f"{STEP}#0", 0, 1000, "user_annotation"),
        host("aten::clone", 2, 12), launch(4, 1), kernel("at::native::copy", 10, 510, 1),
    ]  # fmt: skip
    for number in range(2, 12):
        at = 12 + 2 * number
        start = 510 + 10 * (number - 2)
        spans += [launch(at, number), kernel("triton_a", start, start + 10, number)]
    blocked = host("cudaLaunchKernel", 40, 560, "cuda_runtime", 12)
    spans += [blocked, kernel("triton_a", 610, 620, 12)]
    trace = Trace.of([host(f"{STEP}#0", 0, 565, "user_annotation"), *spans[1:]], [])
    clone = CallPlace("aten::clone", LINE)
    assert _saved(trace, clone) == {"copy": 500}


def test_a_copy_from_memory_that_is_not_pinned_keeps_the_host_until_it_begins() -> None:
    """And a wait after it until it has ended: without it the two kernels are alone."""
    copied = host("aten::copy_", 10, 160)
    trace = one_step(
        _graph(0, 5), launch(1, 1), kernel("triton_a", 2, 102, 1), copied,
        host("cudaMemcpyAsync", 12, 110, "cuda_runtime", 2),
        kernel("Memcpy HtoD (Pageable -> Device)", 104, 150, 2),
        host("cudaStreamSynchronize", 115, 152, "cuda_runtime", 3),
        _graph(160, 170), launch(165, 4), kernel("triton_b", 167, 217, 4), end=170,
    )  # fmt: skip
    saved = _saved(trace, CallPlace("aten::copy_", LINE))
    assert next(iter(saved)) == "transfer"
    assert saved["transfer"] == pytest.approx(StepReplay(trace).step_us - 152, abs=3)


def test_times_of_a_damaged_record_are_taken_as_they_are() -> None:
    far = 1e300
    trace = one_step(
        host("aten::add", 0, far), launch(1, 1), kernel("at::native::add", -far, 2, 1),
        kernel("at::native::add", 5, far, 77), *_read(far, 2 * far), end=3 * far,
    )  # fmt: skip
    assert all(cause.saves_us >= 0 for cause in causes_of(trace, StepPlaces(), 10.0))


def test_several_threads_that_launch_are_one_host() -> None:
    """The backward pass runs in a thread of its own while the main one waits for it; another
    thread copies meanwhile, beside both."""
    backward = TraceSpan("autograd::engine::evaluate_function: MmBackward0", "cpu_op", 10, 90, 2)
    launching = TraceSpan("cudaLaunchKernel", "cuda_runtime", 80, 81, 2, correlation=1)
    beside = TraceSpan("cudaMemcpyAsync", "cuda_runtime", 20, 30, 3, correlation=2)
    trace = one_step(
        _graph(0, 10), backward, launching, beside, kernel("at::native::mul", 84, 94, 1),
        kernel("Memcpy DtoD", 25, 35, 2, stream=8), end=100,
    )  # fmt: skip
    replay = StepReplay(trace)
    assert [(piece.segment.work, piece.us) for piece in replay.pieces] == [
        ("wrapper", 10), ("backward", 70), ("launch", 1), ("backward", 9), ("python", 10),
    ]  # fmt: skip
    assert replay.step_us == 100


def test_python_around_calls_stays() -> None:
    """Of two pieces of 4 and one of 200, the long one can go."""
    spans = [host("aten::empty", 0, 1), host("aten::empty", 5, 6), host("aten::empty", 206, 207)]
    trace = one_step(*spans, launch(211, 1), kernel("triton_a", 213, 218, 1), end=212)
    found = causes_of(trace, StepPlaces(lines=[HostLine(LINE, 200.0, "loads")]), 212.0)
    assert (found[0].cause, found[0].lines, found[0].saves_us) == ("python", [LINE], 196)


def test_launches_that_would_go_are_those_that_cuda_graphs_take_away() -> None:
    """The same program with and without CUDA graphs, both measured on an H200."""
    causes = causes_of(recorded("default"), StepPlaces(), STEP_US["default"], "high")
    saved = STEP_US["default"] - STEP_US["cudagraphs"]
    assert causes[0].cause == "launches"
    assert causes[0].saves_us == pytest.approx(saved, rel=0.05)


_LEFT_OUT = {"sync": "wait", "copy": "copy", "python": "python", "data": "data"}


def _any_step(chosen: random.Random) -> list[Do]:
    """Kernels of any length, waits after some, and up to three other causes among them."""
    kernel_us, host_us = chosen.choice([5, 20, 60, 200]), chosen.choice([5, 15, 40])
    every = chosen.choice([0, 1, 3, 10])
    step = []
    for number in range(chosen.randint(3, 40)):
        us, way = chosen.uniform(0.3, 2) * kernel_us, chosen.uniform(0.3, 2) * host_us
        step.append(Do("run", us, way))
        step += [Do("wait")] if every and number % every == 0 else []
    others = (
        Do("copy", chosen.uniform(0.1, 40) * kernel_us),
        Do("python", chosen.uniform(0.1, 30) * host_us + 30),
        Do("data", chosen.uniform(0.1, 30) * host_us),
    )
    for other in others:
        if chosen.random() < 0.7:
            step.insert(chosen.randint(0, len(step)), other)
    return step


@pytest.mark.parametrize("watching", [3.0, 5.0])
@pytest.mark.parametrize("seed", range(40))
def test_what_is_told_is_what_a_known_machine_saves(seed: int, watching: float) -> None:
    chosen = random.Random(seed)
    step = _any_step(chosen)
    queue, before = chosen.choice([64, 1024]), chosen.choice([1, 4, 30])
    whole = Machine(step, queue).step_us()
    trace = Machine(step, queue, watching).trace(before)
    told = {cause.cause: cause.saves_us for cause in causes_of(trace, StepPlaces(), whole)}
    saved = {
        cause: whole - Machine([do for do in step if do.what != what], queue).step_us()
        for cause, what in _LEFT_OUT.items()
        if any(do.what == what for do in step)
    }
    for cause, us in saved.items():
        assert told.get(cause, 0.0) == pytest.approx(us, abs=0.1 * whole), cause
    first = next((cause for cause in told if cause in saved), None)
    assert saved.get(first or "", 0.0) >= max(saved.values(), default=0.0) - 0.05 * whole


def test_nothing_left_out_is_what_was_recorded() -> None:
    for name in STEP_US:
        trace = recorded(name)
        whole = (trace.window[1] - trace.window[0]) / len(trace.steps)
        replay = StepReplay(trace, STEP_US[name])
        assert replay.profiled_us == pytest.approx(whole, rel=0.001)
        assert replay.step_us == pytest.approx(STEP_US[name], rel=0.005)
