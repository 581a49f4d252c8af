"""The bar of a step: what the device does, and why it waits."""

from __future__ import annotations

import pytest

from compilescope.knowledge.profiles.calls import WAIT, CallPlace, StepPlaces, UserLine
from compilescope.knowledge.profiles.step import Part, StepBar, bar_of
from compilescope.knowledge.profiles.trace import Trace
from profiles.traces import STEP_US, host, kernel, kernels_us, launch, one_step, recorded


def _parts(trace: Trace, step_us: float | None = None) -> dict[Part, float]:
    bar = bar_of(trace, step_us)
    assert bar is not None
    return {part.part: round(part.us, 3) for part in bar.parts}


def _bar(name: str) -> StepBar:
    bar = bar_of(recorded(name), STEP_US[name])
    assert bar is not None
    return bar


def test_busy_and_late() -> None:
    trace = one_step(
        launch(10, 1), kernel("triton_poi_fused_add_0", 12, 40, 1),
        launch(60, 2), kernel("sm90_xmma_gemm_f32", 62, 90, 2),
    )  # fmt: skip
    assert _parts(trace) == {
        "generated": 28, "library": 28, "latency": 2, "launch": 2, "python": 40,
    }  # fmt: skip


def test_a_host_that_is_early_enough_costs_nothing() -> None:
    trace = one_step(
        launch(0, 1), launch(2, 2), kernel("triton_a", 1, 50, 1), kernel("triton_b", 50, 100, 2)
    )
    assert _parts(trace) == {"generated": 99, "launch": 1}


def test_a_synchronisation_is_named() -> None:
    trace = one_step(
        launch(1, 1), kernel("triton_a", 2, 30, 1),
        host("aten::_local_scalar_dense", 3, 36),
        host("cudaStreamSynchronize", 5, 31, "cuda_runtime", 9),
        host("aten::add", 50, 60), launch(55, 2), kernel("at::native::add", 56, 100, 2),
    )  # fmt: skip
    bar = bar_of(trace)
    assert bar is not None
    assert {part.part: part.us for part in bar.parts}["sync"] == 26
    (point,) = bar.syncs
    assert (point.name, point.calls, point.idle_us) == ("aten::_local_scalar_dense", 1, 26)


def _waits(*lines: int) -> list[int | None]:
    """The lines of two waits that no operator asks for, and of one within an operator."""
    trace = one_step(
        launch(1, 1), kernel("triton_a", 2, 30, 1),
        host("cudaDeviceSynchronize", 5, 31, "cuda_runtime", 8),
        host("aten::item", 32, 36), host("cudaStreamSynchronize", 33, 35, "cuda_runtime", 9),
        launch(40, 2), kernel("triton_a", 42, 60, 2),
        host("cudaDeviceSynchronize", 45, 61, "cuda_runtime", 10),
        launch(70, 3), kernel("triton_a", 72, 100, 3),
    )  # fmt: skip
    known = [CallPlace(WAIT, UserLine("train.py", line)) for line in lines]
    bar = bar_of(trace, places=StepPlaces(known))
    assert bar is not None
    return [None if at is None else at.line for at in (point.at for point in bar.syncs)]


def test_a_wait_that_no_operator_asks_for_has_its_line() -> None:
    assert _waits(7, 9) == [9, 7, None]  # The one that the device idles most after comes first.
    assert _waits(7) == [7, None]  # Of one line, however often it is come to.
    assert _waits(7, 9, 11) == _waits() == [None, None]  # Which is which, nobody knows.


def test_guards_data_optimizer_and_wrapper() -> None:
    trace = one_step(
        host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 20),
        host("TorchDynamo Cache Lookup", 20, 30),
        host("Torch-Compiled Region: 0/0", 30, 50),
        host("aten::empty", 35, 40),
        host("Optimizer.step#AdamW.step", 50, 79),
        launch(79, 1), kernel("triton_a", 80, 100, 1),
    )  # fmt: skip
    assert _parts(trace) == {
        "generated": 20, "data": 20, "guards": 10, "wrapper": 20, "optimizer": 29, "launch": 1,
    }  # fmt: skip


def test_work_beside_a_kernel_counts_once() -> None:
    trace = one_step(
        launch(0, 1), kernel("triton_a", 0, 60, 1),
        kernel("Memcpy HtoD", 20, 70, 1, stream=8),
        kernel("ncclDevKernel_AllReduce", 65, 100, 1, stream=9),
    )  # fmt: skip
    assert _parts(trace) == {"generated": 60, "collective": 35, "copy": 5}


def test_the_wait_is_less_without_the_profiler() -> None:
    trace = one_step(
        host("aten::empty", 20, 40), launch(50, 1), kernel("triton_a", 51, 91, 1), end=91
    )
    assert _parts(trace) == {"generated": 40, "python": 30, "operator": 20, "launch": 1}
    # 51 us of waiting in four pieces: Python, an operator, Python, a launch of 1 us. Of 7 us that
    # the profiler took, each piece bears two, but for the launch, which has one.
    assert _parts(trace, step_us=84) == {"generated": 40, "python": 26, "operator": 18}
    # A step that was measured shorter than its kernels is one of its kernels.
    assert _parts(trace, step_us=10) == {"generated": 40}


def test_without_a_device() -> None:
    trace = one_step(
        host("Torch-Compiled Region: 0/0", 0, 60),
        host("## Call CompiledFxGraph abc ##", 10, 50),
        host("aten::mm", 20, 40),
        host("aten::mean", 70, 90),
    )
    assert _parts(trace) == {
        "generated": 20, "library": 20, "python": 20, "wrapper": 20, "operator": 20,
    }  # fmt: skip


def test_no_step_no_bar() -> None:
    assert bar_of(Trace.of([kernel("triton_a", 0, 1, 1)], [])) is None


@pytest.mark.parametrize("name", STEP_US)
def test_recorded_steps_add_up(name: str) -> None:
    bar = _bar(name)
    assert sum(part.us for part in bar.parts) == pytest.approx(bar.step_us, rel=1e-6)
    assert bar.step_us == STEP_US[name]
    # What torch's own table sums up to for three steps of the default one is 7.242 ms.
    if name == "default":
        kernels = kernels_us(recorded(name))
        assert kernels == pytest.approx(7242 / 3, rel=0.01)
        assert bar.busy_us == pytest.approx(kernels, rel=0.02)


def test_recorded_causes() -> None:
    """What was planted is what is told."""
    default = {part.part: part.us for part in _bar("default").parts}
    graphs = {part.part: part.us for part in _bar("cudagraphs").parts}
    # Launch bound: the device waits for a host that walks from kernel to kernel.
    between = default["wrapper"] + default["launch"]
    assert between > 0.4 * STEP_US["default"] > 5 * (graphs["wrapper"] + graphs["launch"])
    assert max(graphs, key=lambda part: graphs[part]) == "library"
    starved = {part.part: part.us for part in _bar("starved").parts}
    # 20 ms of sleep a step, which the profiler does not make longer.
    assert max(starved, key=lambda part: starved[part]) == "python"
    assert 20_000 < starved["python"] < 22_000
    assert [point.name for point in _bar("item").syncs] == ["aten::_local_scalar_dense"]
    assert [point.name for point in _bar("copies").syncs] == ["aten::copy_"]
    assert _bar("default").syncs == []
