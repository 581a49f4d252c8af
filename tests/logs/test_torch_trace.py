"""From real traces to events, and from records that no trace here has."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.knowledge.analysis.cache_lookups import cache_lookups
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.logs.trace.phases import Phases
from compilescope.logs.words.break_words import read_break
from compilescope.record import bodies
from compilescope.record.guards import decode_guards
from compilescope.record.run import Run
from logs.traces import golden, read_bytes, record

MODEL = "/home/ada/project/model.py"


@pytest.fixture(scope="module", params=["eager", "inductor", "warm"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Digest:
    run, source = read_bytes(golden(request.param), tmp_path_factory.mktemp("golden") / "run")
    assert source.tally.unread == 0
    assert not source.tally.cut_head
    assert not source.tally.cut_tail
    return digest(run)


@pytest.fixture(scope="module")
def inductor(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return read_bytes(golden("inductor"), tmp_path_factory.mktemp("inductor") / "run")[0]


def test_breaks_have_root_cause_and_place(seen: Digest) -> None:
    sites = {(site.file, site.line, site.column, site.gb_id, site.outcome) for site in seen.sites}
    assert sites == {
        (MODEL, 15, 3, "GB0170", "resumed"),
        (MODEL, 17, 0, "GB0059", "resumed"),
        (MODEL, 25, 13, "GB0124", "frame-eager"),
    }
    loop = next(site for site in seen.sites if site.line == 25)
    assert loop.wrappers == ("graph break in loop",)
    assert loop.hints


def test_recompiles_have_every_failed_guard_and_its_value(seen: Digest) -> None:
    mix = next(frame for frame in seen.recompiles if frame.function == "mix")
    causes = {(cause.subject, cause.expected, cause.actual) for cause in mix.guards}
    assert causes == {("x.size()[0]", "3", "4"), ("flag", "True", "False")}
    assert {cause.file for cause in mix.guards} == {MODEL}


def test_frames_left_to_eager(seen: Digest) -> None:
    assert [(f.function, f.line, f.rest_only) for f in seen.eager_frames] == [("total", 21, False)]
    assert seen.regions == 2
    assert seen.torch == "2.13.0+cpu"
    assert not seen.cut_short


def test_resumed_functions_are_the_functions_they_resume(seen: Digest) -> None:
    resumed = [f for f in seen.recompiles if f.resumed_at]
    assert resumed
    assert {(f.function, f.line) for f in resumed} == {("forward", 13)}


def test_every_stage_of_a_graph(inductor: Run) -> None:
    stages = {body.stage for _, body in inductor.of(bodies.GraphCaptured)}
    assert stages == {
        "dynamo", "aot_joint", "aot_forward", "aot_backward", "aot_inference", "post_grad",
    }  # fmt: skip
    for _, body in inductor.of(bodies.GraphCaptured):
        assert body.text and "class " in (inductor.artifacts.get(body.text) or "")
        assert body.ops


def test_output_code_and_its_origins(inductor: Run) -> None:
    emitted = [body for _, body in inductor.of(bodies.KernelEmitted)]
    assert {body.direction for body in emitted} == {"forward", "backward", "inference"}
    assert any(body.kernels for body in emitted)
    assert all("async_compile" in (inductor.artifacts.get(body.artifact) or "") for body in emitted)
    assert all(body.file.startswith("/home/ada/cache/") for body in emitted)


def test_times_caches_guards(inductor: Run) -> None:
    times = [body for _, body in inductor.of(bodies.CompileTime)]
    assert {body.phase for body in times} == {"forward", "backward"}
    assert all(body.duration_ns > 0 for body in times)
    assert digest(inductor).caches["fx_graph"].misses == 10
    asked = [each for each in cache_lookups(inductor) if each.body.cache == "fx_graph"]
    assert {each.direction for each in asked} == {"forward", "backward", "inference"}
    assert len({each.body.settings for each in asked}) == 1, "graphs share their settings"
    names = {part.name for part in asked[0].parts}
    assert {"gm", "torch_version", "inductor_config[max_autotune]"} <= names
    for event, body in inductor.of(bodies.GuardSet):
        guards = decode_guards(inductor.artifacts.get(body.artifact) or "")
        assert len(guards) == body.count, event.compile_id
        assert sum(body.kinds.values()) == body.count


def test_chromium_events_become_phases_that_nest(inductor: Run) -> None:
    events = [(event, body) for event, body in inductor.of(bodies.CompilePhases)]
    names = {phase.name for _, body in events for phase in body.phases}
    assert {"entire_frame_compile", "backend_compile"} <= names
    for event, body in events:
        first = body.phases[0]
        assert all(phase.start_ns >= first.start_ns for phase in body.phases if phase.depth)
        # The clock of the stamps and that of the phases are one.
        assert abs(event.time_ns - first.start_ns) < 200 * 10**9


def test_symbols_and_other_records_are_kept(inductor: Run) -> None:
    shapes = [body for _, body in inductor.of(bodies.SymbolicShape)]
    assert any(body.action == "created" and body.value and body.sources for body in shapes)
    kinds: dict[str, int] = {}
    for _, body in inductor.of(bodies.TraceRecords):
        for kind, count in body.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + count
        lines = (inductor.artifacts.get(body.artifact or "") or "").splitlines()
        assert len(lines) == sum(body.kinds.values())
    assert {"describe_tensor", "fx_graph_runnable", "ORIGINAL_BYTECODE"} <= kinds.keys()
    assert not any(isinstance(event.body, bodies.Unknown) for event in inductor.events)


def test_equal_payloads_are_kept_once(tmp_path: Path) -> None:
    graph = "class GraphModule(torch.nn.Module):\n    def forward(self, x):\n        y = x + 1\n"
    data = b"".join(record("dynamo_output_graph", {}, graph, frame=n) for n in range(50))
    run, _ = read_bytes(data, tmp_path / "run")
    assert len({body.text for _, body in run.of(bodies.GraphCaptured)}) == 1
    (pack,) = (tmp_path / "run" / "artifacts").iterdir()
    assert pack.stat().st_size < 500


def test_unknown_kinds_are_kept_whole(tmp_path: Path) -> None:
    data = record("quantum_leap", {"deep": [1, {"x": None}]}, "a\n\tb", frame=3)
    run, source = read_bytes(data, tmp_path / "run")
    (body,) = [event.body for event in run.events if isinstance(event.body, bodies.Unknown)]
    assert body.raw["quantum_leap"] == {"deep": [1, {"x": None}]}
    assert run.artifacts.get(body.raw["payload"]) == "a\n\tb"
    assert source.tally.unread == 0


def test_known_kind_with_other_fields_is_kept_whole(tmp_path: Path) -> None:
    run, _ = read_bytes(record("dynamo_start", {"stack": "elsewhere"}), tmp_path / "run")
    (body,) = [event.body for event in run.events if isinstance(event.body, bodies.Unknown)]
    assert body.raw["dynamo_start"] == {"stack": "elsewhere"}


def test_a_reset_begins_a_new_epoch(tmp_path: Path) -> None:
    stack = {"stack": [{"line": 8, "name": "f", "filename": "/home/ada/m.py"}]}
    graph = "class GraphModule(torch.nn.Module):\n    pass"
    data = b"".join(
        record("dynamo_start", stack) + record("dynamo_output_graph", {}, graph) for _ in range(3)
    )
    run, _ = read_bytes(data, tmp_path / "run")
    assert [event.epoch for event, _ in run.of(bodies.GraphCaptured)] == [0, 1, 2]


def test_ranks_and_processes_in_one_file(tmp_path: Path) -> None:
    graph = "class GraphModule(torch.nn.Module):\n    pass"
    data = b"".join(
        record("dynamo_output_graph", {}, graph, pid=100 + rank, rank=rank) for rank in (0, 1, 0)
    )
    run, source = read_bytes(data, tmp_path / "run")
    assert sorted(event.rank for event, _ in run.of(bodies.GraphCaptured)) == [0, 0, 1]
    assert source.tally.interleaved == "tagged"
    assert len({event.id for event in run.events}) == len(run.events)


def test_what_is_not_ours_comes_back(tmp_path: Path) -> None:
    from compilescope.logs.format import LogSource
    from compilescope.logs.run_writer import RunWriter
    from compilescope.logs.trace.reader import TraceReader

    (tmp_path / "run").mkdir()
    reader = TraceReader(RunWriter(tmp_path / "run"), LogSource("x", 0))
    mixed = b"loss 0.5\n" + record("artifact", {"name": "a"}, "text") + b"loss 0.4\nepoch 2"
    assert reader.feed(mixed) + reader.finish() == b"loss 0.5\nloss 0.4\nepoch 2"


def test_blocks_may_end_anywhere_between_lines(tmp_path: Path) -> None:
    data = golden("eager")
    ends = [n + 1 for n, byte in enumerate(data) if byte == 10]
    whole, _ = read_bytes(data, tmp_path / "whole")
    pieces, _ = read_bytes(data, tmp_path / "pieces", cuts=ends[:-1:7])
    assert [event.body for event in pieces.events] == [event.body for event in whole.events]


def test_suppressed_backend_error(tmp_path: Path) -> None:
    fields = {
        "compile_id": "0/0", "co_name": "f", "co_filename": "/home/ada/m.py", "co_firstlineno": 8,
        "fail_type": "BackendCompilerFailed",
        "fail_reason": "backend='mine' raised:\nValueError: no kernel",
        "is_forward": True, "duration_us": 1500, "config_suppress_errors": True,
        "dynamo_cumulative_compile_time_us": 1400, "dynamo_config": '{"a": 1}',
    }  # fmt: skip
    run, _ = read_bytes(record("compilation_metrics", fields), tmp_path / "run")
    seen = digest(run)
    (failure,) = seen.failures
    assert (failure.error, failure.backend, failure.suppressed) == (
        "BackendCompilerFailed", "mine", True,
    )  # fmt: skip
    assert (failure.file, failure.line) == ("/home/ada/m.py", 8)
    assert [(f.function, f.cause) for f in seen.eager_frames] == [("f", "backend")]
    (time,) = [body for _, body in run.of(bodies.CompileTime)]
    assert time.duration_ns == 1_500_000
    assert not time.ok


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("pair = x.sum().item() + x.max().item()", None),
        ("return x.item()", None),
        ("x.item()", 0),
        ("x.sum().item() + 1", 0),
    ],
)
def test_a_torch_without_columns_marks_no_name(line: str, column: int | None) -> None:
    """torch 2.11 draws no carets; later ones draw none under what begins the line."""
    text = f"""Graph break in user code at /home/ada/train.py:10
Graph Break Reason: Encountered graph break when attempting to trace CALL:

Unsupported Tensor.item() call with capture_scalar_outputs=False

User code traceback:
  File "/home/ada/train.py", line 10, in f
    {line}
"""
    words = read_break(text, columns=True)
    assert words is not None
    assert words.stack[-1].column == column


def test_phases_that_stay_open_are_not_taken_up_with_each_that_ends() -> None:
    """A stack that is as deep as the trace is long."""
    phases = Phases()
    names = [f"p{number}" for number in range(9000)]
    for number, name in enumerate(names):
        phases.add(b'{"name": "%s", "ts": %d, "ph": "B"}' % (name.encode(), number))
    took = [
        phases.add(b'{"name": "%s", "ts": 9000, "ph": "E"}' % name.encode())
        for name in reversed(names)
    ]
    written = [phase.name for some in took for event in some for phase in event.body.phases]
    assert sorted(written) == sorted(names)
    assert len([some for some in took if some]) < 20
    # One that ends twice, or never began, is none.
    assert phases.add(b'{"name": "p0", "ts": 9001, "ph": "E"}') == phases.finish() == []
