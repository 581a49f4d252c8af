"""Why a step is slow: what is planted in a trace is what is named, with its line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from builders import event, run_of
from compilescope.knowledge.analysis.step_causes import steps_json
from compilescope.knowledge.profiles.calls import (
    CallPlace,
    HostLine,
    StepPlaces,
    UserLine,
    read_places,
    read_unfused,
)
from compilescope.knowledge.profiles.causes import Cause, causes_of
from compilescope.knowledge.profiles.kernel_rows import KernelRow, Roof, bound_of, kernel_rows
from compilescope.knowledge.profiles.step import bar_of
from compilescope.knowledge.profiles.step_profile import profiles_of
from compilescope.knowledge.profiles.trace import STEP, Trace, TraceSpan, compact, read_stored
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import StepsProfiled
from compilescope.record.run import Run
from compilescope.report.step_trace import spans_of, step_events
from profiles.traces import (
    STEP_US,
    host,
    kernel,
    kernels_us,
    launch,
    one_step,
    profiled_run,
    recorded,
)

LINE = UserLine("/train.py", 12, "step")


def _first(trace: Trace, *places: CallPlace, **settings: str) -> Cause:
    return causes_of(trace, StepPlaces(list(places)), **settings)[0]


def _eager(name: str, *, device: str = "void at::native::reduce") -> Trace:
    """One operator outside of compiled code, whose kernel is nearly all of the step."""
    return one_step(host(name, 0, 5), launch(2, 1), kernel(device, 3, 100, 1), end=5)


def test_float64_before_all_that_it_is_besides() -> None:
    place = CallPlace("aten::mean", LINE, dtypes=("float64",))
    assert _first(_eager("aten::mean"), place).cause == "float64"
    plain = msgspec.structs.replace(place, dtypes=("float32",))
    first = _first(_eager("aten::mean"), plain)
    assert (first.cause, first.lines) == ("uncompiled", [LINE])


@pytest.mark.parametrize(
    ("name", "device", "cause"),
    [
        ("aten::contiguous", "void at::native::elementwise_kernel", "copy"),
        ("aten::to", "Memcpy HtoD (Pageable -> Device)", "transfer"),
        ("aten::conv2d", "void cudnn::ops::nchwToNhwcKernel", "layout"),
    ],
)
def test_kernels_of_operators(name: str, device: str, cause: str) -> None:
    trace = one_step(
        host(name, 0, 90), host("cudaStreamSynchronize", 5, 89, "cuda_runtime", 7),
        launch(2, 1), kernel(device, 3, 88, 1), end=90,
    )  # fmt: skip
    first = _first(trace, CallPlace(name, LINE, dtypes=("float32",)))
    assert (first.cause, first.lines) == (cause, [LINE])


def test_a_synchronisation_costs_what_the_host_waits() -> None:
    def trace(until: float) -> Trace:
        return one_step(
            launch(1, 1), kernel("triton_a", 2, 40, 1), host("aten::item", 3, until + 1),
            host("cudaStreamSynchronize", 4, until, "cuda_runtime", 9),
            launch(70, 2), kernel("triton_b", 71, 100, 2),
        )  # fmt: skip

    place = CallPlace("aten::item", LINE)
    bar = bar_of(trace(41), None, StepPlaces([place]))
    assert bar is not None and bar.syncs[0].at == LINE
    first = _first(trace(41), place)
    assert (first.cause, first.lines) == ("sync", [LINE])
    # And Python and the launch at the beginning, for which the host would have had time enough.
    assert first.us == pytest.approx(31 + 1 + 1)
    # A host that was late anyway has lost nothing by it.
    late = one_step(
        launch(1, 1), kernel("triton_a", 2, 5, 1), host("aten::item", 30, 32),
        host("cudaStreamSynchronize", 30.5, 31, "cuda_runtime", 9),
        launch(98, 2), kernel("triton_b", 99, 100, 2),
    )  # fmt: skip
    assert "sync" not in [cause.cause for cause in causes_of(late, StepPlaces([place]))]


def test_waiting_for_launches_is_due_to_the_synchronisation_that_took_the_lead() -> None:
    """Device: a of 300, b and c of 5 each. The host needs 40 for each launch, 120 in all."""

    def trace(*wait: TraceSpan) -> Trace:
        graph = host("## Call CompiledFxGraph x ##", 310, 440)
        return one_step(
            launch(1, 1), kernel("triton_a", 2, 302, 1), *wait, graph,
            launch(350, 2), kernel("triton_b", 351, 356, 2),
            launch(400, 3), kernel("triton_c", 401, 406, 3), end=440,
        )  # fmt: skip

    sync = host("cudaStreamSynchronize", 4, 303, "cuda_runtime", 9)
    first, *others = causes_of(
        trace(host("aten::item", 3, 305), sync), StepPlaces([CallPlace("aten::item", LINE)])
    )
    assert (first.cause, first.lines) == ("sync", [LINE])
    assert first.share > 0.2 and first.saves_us == 127  # Until the device is busy all the time.
    # CUDA graphs would help as well: the wait would be shorter.
    assert [(cause.cause, cause.share) for cause in others] == [("launches", 0)]
    without = causes_of(trace(), StepPlaces())
    assert "sync" not in [cause.cause for cause in without]
    assert "launches" in [cause.cause for cause in without]


def _ahead() -> Trace:
    """Two steps of 10 on the host, whose kernels take 100 each; and one before them."""
    first, second = (host(f"{STEP}#{n}", 10 * n, 10 * n + 10, "user_annotation") for n in (0, 1))
    spans = [
        kernel("before", -90, 20, 9),
        host("aten::mm", 1, 5), launch(2, 1), kernel("gemm", 20, 120, 1),
        host("aten::mm", 11, 15), launch(12, 2), kernel("gemm", 120, 220, 2),
    ]  # fmt: skip
    return Trace.of([first, second, *spans], [])


def test_a_host_that_is_ahead_of_the_device() -> None:
    trace = _ahead()
    bar = bar_of(trace)
    assert bar is not None and (bar.step_us, bar.busy_us, bar.kernels) == (100, 100, 1)
    place = CallPlace("aten::mm", LINE, dtypes=("float64",))
    (cause,) = causes_of(trace, StepPlaces([place]))
    assert (cause.cause, cause.us, cause.lines) == ("float64", 100, [LINE])
    (row,) = kernel_rows(trace, StepPlaces([place]))
    assert (row.calls, row.us, row.share) == (1, 100, 1)


def test_kernels_of_a_host_that_is_ahead_are_stored(tmp_path: Path) -> None:
    trace = _ahead()
    events = [
        {
            "ph": "X", "cat": span.kind, "name": span.name, "tid": 1, "ts": span.start + 1000,
            "dur": span.duration,
            "args": {"correlation": span.correlation}
            | ({"stream": 7, "device": 0} if span.device >= 0 else {}),
        }
        for span in (*trace.host, *trace.device)
    ]  # fmt: skip
    file = tmp_path / "trace.json"
    file.write_bytes(msgspec.json.encode({"traceEvents": events}))
    whole = read_stored(compact(file, first=0))
    assert [span.name for span in whole.asked] == ["gemm", "gemm"]
    assert whole.window == (20, 220)
    last = read_stored(compact(file, first=1))
    assert last.window == (110, 210) and len(last.asked) == 1


@pytest.mark.parametrize(
    ("device", "operator", "cause"),
    [
        ("void at::native::direct_copy_kernel_cuda", "aten::cudnn_convolution", "layout"),
        ("void at::native::bfloat16_copy_kernel_cuda", "aten::cudnn_convolution", "fallback"),
        ("triton_poi_fused__unsafe_view_clone_3", "aten::mm", "layout"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x32>", "aten::mm", "float64"),
        ("triton_poi_fused_tanh_0", "", "float64"),
    ],
)
def test_kernels_of_compiled_code(device: str, operator: str, cause: str) -> None:
    trace = one_step(
        host("## Call CompiledFxGraph x ##", 0, 9), host(operator or "triton_x", 1, 6),
        launch(2, 1), kernel(device, 3, 100, 1), end=9,
    )  # fmt: skip
    calls = [CallPlace(operator, LINE, within="graph", dtypes=("float32",))] if operator else []
    tanh = CallPlace("triton_poi_fused_tanh_0", LINE, within="graph", dtypes=("float64",))
    first = causes_of(trace, StepPlaces(calls, [tanh]))[0]
    assert (first.cause, first.lines) == (cause, [LINE])


def test_tf32_only_where_the_device_has_it_and_it_is_off() -> None:
    trace = one_step(
        host("## Call CompiledFxGraph x ##", 0, 9), host("aten::mm", 1, 6), launch(2, 1),
        kernel("sm80_xmma_gemm_f32f32_f32f32", 3, 100, 1), end=9,
    )  # fmt: skip
    place = CallPlace("aten::mm", LINE, within="graph", dtypes=("float32",), flops=1e9)
    hopper = Trace(trace.host, trace.device, trace.steps, [{"computeMajor": 9}])
    turing = Trace(trace.host, trace.device, trace.steps, [{"computeMajor": 7}])
    assert _first(hopper, place, matmul_precision="highest").cause == "tf32"
    for other, precision in ((hopper, "high"), (turing, "highest")):
        found = causes_of(other, StepPlaces([place]), matmul_precision=precision)
        assert "tf32" not in [cause.cause for cause in found]


def test_python_has_the_line_that_takes_most_of_it() -> None:
    trace = one_step(launch(90, 1), kernel("triton_a", 91, 100, 1))
    places = StepPlaces(lines=[HostLine(LINE, 80.0, "sleep")])
    first = causes_of(trace, places)[0]
    assert (first.cause, first.lines, first.names) == ("python", [LINE], ["sleep"])


def test_recorded_causes() -> None:
    first = {
        name: causes_of(recorded(name), StepPlaces(), STEP_US[name], "high")[0].cause
        for name in STEP_US
    }
    assert first["default"] == "launches" and first["starved"] == "python"
    for name in STEP_US:
        found = causes_of(recorded(name), StepPlaces(), STEP_US[name], "high")
        assert sum(cause.share for cause in found) < 1.0


def test_cuda_graphs_for_sizes_that_are_new() -> None:
    first = steps_json(profiled_run(name="new_sizes"))[0]["causes"][0]
    assert (first["cause"], first["line"]) == ("cudagraphs", 1)
    assert "in 5 of 5 steps a size was new" in first["why"]
    told = steps_json(profiled_run(name="cudagraphs"))[0]["causes"]
    assert not any("a size was new" in cause["why"] for cause in told)


def test_an_operator_on_the_cpu_has_the_line_of_its_turn() -> None:
    trace = one_step(host("aten::mul", 0, 10), host("aten::mul", 20, 90))
    other = UserLine("/train.py", 3, "step")
    first = _first(trace, CallPlace("aten::mul", other), CallPlace("aten::mul", LINE))
    assert (first.cause, first.lines) == ("uncompiled", [LINE, other])


def test_rows_add_up_to_the_profilers_own() -> None:
    for name in STEP_US:
        trace = recorded(name)
        rows = kernel_rows(trace, StepPlaces())
        whole = kernels_us(trace)
        assert sum(row.us for row in rows) == pytest.approx(whole)


def test_how_near_to_the_roof() -> None:
    roof = Roof(1e12, {"float32": 1e13, "tf32": 1e14})
    row = KernelRow("k", "library", 1, 100.0, 0.5, dtypes=("float32",), bytes=8e7, flops=0)
    memory = bound_of(row, roof, "highest", True)
    assert (memory.by, memory.share) == ("memory", pytest.approx(0.8))
    compute = msgspec.structs.replace(row, flops=9e8)
    assert bound_of(compute, roof, "highest", True).by == "compute"
    assert bound_of(compute, roof, "high", True).by == "memory"
    assert bound_of(msgspec.structs.replace(row, us=4.0), roof, "high", True).by == "launch"
    assert bound_of(row, None, "high", True).by == ""


def test_a_trace_to_look_at_has_kernels_with_lines() -> None:
    trace = _eager("aten::mean")
    places = StepPlaces([CallPlace("aten::mean", LINE)])
    spans = [e for e in spans_of(trace, places, {}, 7, 100.0, "/") if e["ph"] == "X"]
    (found,) = (each for each in spans if each["cat"] == "kernel")
    assert found["args"] == {"place": "train.py:12", "correlation": 1} and found["ts"] == 103
    (asked,) = (e for e in spans if e["name"] == "cudaLaunchKernel")
    assert asked["args"]["correlation"] == 1


@pytest.mark.parametrize("damaged", ["", "{", '{"names": ["\ud800"]}', "[" * 20_000])
def test_a_damaged_profile_spoils_no_page(damaged: str) -> None:
    artifacts = MemoryArtifacts()
    names = (artifacts.put(damaged, "profile"), artifacts.put(damaged, "json"))
    told = StepsProfiled(steps=2, step_ns=(1,), trace=names[0], places=names[1], unfused=names[1])
    whole = run_of(event(told, number=0))
    run = Run(whole.header, whole.events, artifacts)
    (profile,) = profiles_of(run)
    assert profile.bar is None
    assert profile.told.reason == ("its record is damaged" if damaged else "")
    assert list(step_events(run, 0)) == []
    assert read_places(damaged) == StepPlaces() and read_unfused(damaged) == []
