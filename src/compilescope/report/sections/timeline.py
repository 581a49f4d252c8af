"""When what was compiled: a lane a thread, and where the time went by phase and function."""

from __future__ import annotations

from compilescope.knowledge.analysis.timeline.lanes import (
    ATTEMPT,
    OUTSIDE,
    UNKNOWN,
    FunctionTime,
    PhaseTime,
    RunTimeline,
    TimelineLane,
    function_times,
    phase_times,
    timeline,
)
from compilescope.report import blocks
from compilescope.report.blocks import Block, Heading, Span, Table, Words, note, words
from compilescope.report.links import targets
from compilescope.report.places import count, place
from compilescope.report.render.spans import duration
from compilescope.report.section import Reading, Section
from compilescope.report.timeline_view import Drawing, drawing_of, drawn_lane

# Chosen: threads, and phases in the table of times; the rest is counted.
_MOST_LANES = 64
_MOST_ROWS = 20
_WORDS = {
    ATTEMPT: "one Dynamo pass over a function",
    OUTSIDE: "",
    UNKNOWN: "no phases were recorded for these compilations",
    "dynamo": "one compilation, start to end",
    "entire_frame_compile": "one compilation, without its setup",
    "entire_backward_compile": "compiles a backward graph",
    "bytecode_tracing": "Dynamo traces the function",
    "build_guards": "Dynamo builds the guards",
    "backend_compile": "the backend compiles the captured graph",
    "create_aot_dispatcher_function": "AOTAutograd",
    "aot_collect_metadata": "AOTAutograd finds views and mutations",
    "aot_trace_joint_graph": "AOTAutograd traces forward and backward together",
    "min_cut_rematerialization_partition": "splits saved from recomputed values",
    "_recursive_pre_grad_passes": "Inductor's passes before autograd",
    "_recursive_joint_graph_passes": "Inductor's passes over forward and backward",
    "_recursive_post_grad_passes": "Inductor's passes over the final graph",
    "inductor_compile": "Inductor",
    "fx_codegen_and_compile": "Inductor, on a cache miss",
    "GraphLowering.run": "Inductor lowers the graph to its IR",
    "Scheduler.__init__": "Inductor decides what to fuse",
    "Scheduler.codegen": "Inductor generates kernels",
    "code_gen": "Inductor generates and loads code",
    "PyCodeCache.load_by_key_path": "loads the generated code",
    "compile_file": "the C++ compiler",
    "async_compile.wait": "waits for compile workers",
    "CachingAutotuner.benchmark_all_configs": "benchmarks Triton configurations",
    "gc": "Python's garbage collector",
}
"""torch's phase names that a reader meets first."""


def _build(reading: Reading) -> list[Block]:
    seen = timeline(reading.run)
    if not seen.lanes:
        return []
    drawing = drawing_of(seen, reading.root, reading.once(targets))
    lanes, left_out = _lanes(seen, drawing)
    found: list[Block] = [blocks.Timeline(max(seen.end_ns - seen.start_ns, 1), lanes)]
    found += [note(text) for text in _left_out(seen, left_out)]
    times = phase_times(seen)
    if any(entry.name not in (OUTSIDE, UNKNOWN) for entry in times):
        found += [Heading("By phase", "summed over all threads"), _phases(times)]
        if len(times) > _MOST_ROWS:
            found.append(note(f"and {len(times) - _MOST_ROWS} more phases"))
    else:
        found.append(note("This run has times for whole compilations only, not for their phases."))
    functions = function_times(seen)
    if functions:
        found += [Heading("By function"), _functions(functions, reading.root)]
        if len(functions) > _MOST_ROWS:
            found.append(note(f"and {len(functions) - _MOST_ROWS} more functions"))
    return found


def _lanes(seen: RunTimeline, drawing: Drawing) -> tuple[tuple[blocks.Lane, ...], int]:
    lanes = []
    left_out = 0
    threads: dict[tuple[str, int], int] = {}
    many = len({(lane.process, lane.pid) for lane in seen.lanes}) > 1
    for lane in seen.lanes[:_MOST_LANES]:
        process = (lane.process, lane.pid)
        threads[process] = threads.get(process, 0) + 1
        bars, hidden = drawn_lane(lane, drawing)
        left_out += hidden
        lanes.append(blocks.Lane(_title(lane, threads[process], many), bars))
    return tuple(lanes), left_out


def _title(lane: TimelineLane, number: int, many: bool) -> str:
    thread = "main thread" if lane.main else f"thread {number}"
    return f"rank {lane.rank}, process {lane.pid}, {thread}" if many else thread


def _left_out(seen: RunTimeline, hidden: int) -> list[str]:
    texts = []
    if hidden:
        texts.append(
            f"{count(hidden, 'bar or event', 'bars and events')} left out: the shortest bars, what "
            "is inside them, and surplus events. `compilescope report --format trace` has them all."
        )
    if len(seen.lanes) > _MOST_LANES:
        texts.append(f"and {count(len(seen.lanes) - _MOST_LANES, 'more thread')}")
    unended = sum(not bar.ended for lane in seen.lanes for bar in lane.bars)
    if unended:
        texts.append(f"{count(unended, 'bar')} with no recorded end, drawn as far as recorded.")
    return texts


def _phases(times: list[PhaseTime]) -> Table:
    whole = sum(entry.self_ns for entry in times) or 1
    rows = [
        (
            words(Span(entry.name, "code" if entry.name != OUTSIDE else "dim")),
            words(duration(entry.self_ns)),
            words(f"{100 * entry.self_ns / whole:.1f} %"),
            words(duration(entry.total_ns)),
            words(str(entry.count)),
            words(Span(_WORDS.get(entry.name, ""), "dim")),
        )
        for entry in times[:_MOST_ROWS]
    ]
    columns = ("Phase", "Self time", "Share", "Total time", "Count", "What it does")
    return Table(columns, tuple(rows), (1, 2, 3, 4))


def _functions(times: list[FunctionTime], root: str) -> Table:
    whole = sum(entry.total_ns for entry in times) or 1
    rows = [
        (
            _function(entry, root),
            words(duration(entry.total_ns)),
            words(f"{100 * entry.total_ns / whole:.1f} %"),
            words(str(entry.compilations - entry.backward)),
            words(str(entry.backward)),
            words(Span(str(entry.failed), "bad") if entry.failed else "0"),
        )
        for entry in times[:_MOST_ROWS]
    ]
    columns = ("Function", "Time", "Share", "Forward", "Backward", "Failed")
    return Table(columns, tuple(rows), (1, 2, 3, 4, 5))


def _function(entry: FunctionTime, root: str) -> Words:
    code = entry.code
    if code is None:
        return words(Span(entry.name, "dim"))
    part = f" (from line {code.resumed_at})" if code.resumed else ""
    return words(Span(place(code.file, code.line, root), "strong"), f" {code.function}{part}")


SECTION = Section("timeline", 50, _build, "Timeline", "what compiled when", in_summary=False)
