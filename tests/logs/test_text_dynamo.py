"""Dynamo's records in the words of torch 2.9 to 2.15, under all flags and custom formats."""

# Lines of logs are as long as they are.
# ruff: noqa: E501

from __future__ import annotations

import pytest

from compilescope.knowledge.analysis.digest import digest
from compilescope.logs.text.dynamo.frames import Frames
from compilescope.logs.text.dynamo.record import LogRecord
from compilescope.record.bodies import (
    BreakEcho,
    CompileFailed,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    KernelEmitted,
    Recompile,
)
from compilescope.record.stack import CodeRef
from logs.consoles import golden, of, read

FILE = "/home/me/m.py"
OVERRIDE = "/src/tt-xla/python_package/tt_torch/torch_overrides.py"
REASON = """Data-dependent branching
  Explanation: Detected data-dependent branching.
  Hint: Use `torch.cond`.

  Developer debug context: attempted to jump with TensorVariable()

 For more details about this graph break, please visit: https://x/gb/gb0170.html"""
STACK = f'''  File "{FILE}", line 20, in <module>
    f(x)
  File "{FILE}", line 8, in f
    if x.sum() > 0:
'''


class Log:
    """Lines as torch writes them, a millisecond apart."""

    def __init__(self) -> None:
        self.data = b""
        self.ms = 0

    def add(self, text: str, id: str | None = "0/0", artifact: str = "", level: str = "V") -> Log:
        self.ms += 1
        clock = f"10:00:{self.ms // 1000:02d}.{self.ms % 1000:03d}000"
        prefix = f"{level}1115 {clock} 77 torch/_dynamo/x.py:{self.ms}]"
        prefix += f" [{id}]" if id else ""
        prefix += f" [__{artifact}]" if artifact else ""
        self.data += "".join(f"{prefix} {line}\n" for line in text.split("\n")).encode()
        return self

    def start(self, name: str = "f", line: int = 6, id: str = "0/0") -> Log:
        return self.add(
            f"torchdynamo start compiling {name} {FILE}:{line}, stack (elided 5 frames):\n"
            f'  File "{FILE}", line 20, in <module>\n    f(x)\n',
            id,
        )

    def broken(self, reason: str = REASON, *, id: str = "0/0", line: int = 8) -> Log:
        text = f"Graph break in user code at {FILE}:{line}\nGraph Break Reason: {reason}\n"
        return self.add(f"{text}\nUser code traceback:\n{STACK}", id, "graph_breaks")

    def ended(self) -> Log:
        return self.add(
            "TorchDynamo attempted to trace the following frames: [\n]", None, level="I"
        )


@pytest.mark.parametrize(
    ("lead", "outcome"),
    [
        ("", "resumed"),
        ("Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):\n\n", "resumed"),
        (
            "Encountered graph break that we cannot resume from. Compiling up to the previous resumable"
            " state, then skipping the rest of the function. Graph break encountered:\n\n",
            "rest-eager",
        ),
        (  # torch 2.10
            "Encountered graph break that we cannot resume from. Compiling up to the previous resumable"
            " state, then skipping the rest of the function. Graph break encountered:\n",
            "rest-eager",
        ),
        (
            "Failed to handle graph break gracefully. Skipping the function and falling back to eager."
            " Graph break encountered:\n\n",
            "frame-eager",
        ),
    ],
)  # fmt: skip
def test_root_cause_behind_every_lead(lead: str, outcome: str) -> None:
    run, tally = read(Log().start().broken(lead + REASON).ended().data)
    (body,) = of(run, GraphBreak)
    assert (body.gb_type, body.gb_id, body.outcome) == (
        "Data-dependent branching",
        "GB0170",
        outcome,
    )
    assert body.hints == ("Use `torch.cond`.",)
    assert body.frame == CodeRef(FILE, 6, "f")
    assert tally.unread == 0


def test_wrappers_never_hide_the_root() -> None:
    chain = "\n\n*** While handling this graph break, another graph break occurred: ***\n\n"
    run, _ = read(
        Log().start().broken(REASON + chain + "graph break in loop\n  Explanation: x").data
    )
    (body,) = of(run, GraphBreak)
    assert (body.gb_type, body.wrappers) == ("Data-dependent branching", ("graph break in loop",))


def test_repetitions_are_one_cause() -> None:
    log = Log().start().broken()
    again = "Graph break (user stack suppressed due to duplicate graph break) in user code at"
    for number in range(1, 4):
        log.start(id=f"{number}/0")
        log.add(f"{again} {FILE}:8\nGraph Break Reason: {REASON}", f"{number}/0", "graph_breaks")
    run, _ = read(log.ended().data)
    (site,) = digest(run).sites
    assert (site.events, site.source.strip()) == (4, "if x.sum() > 0:")


def test_torch_2_9_suppresses_by_place_alone() -> None:
    log = Log().start().broken().start(id="1/0")
    again = "Graph break (user stack suppressed due to duplicate graph break) in user code at"
    log.add(
        f"{again} {FILE}:8\nGraph Break Reason: Another type\n  Explanation: x",
        "1/0",
        "graph_breaks",
    )
    run, _ = read(log.ended().data)
    first, second = digest(run).sites
    assert (first.line, second.line) == (8, 8)
    assert second.source == first.source


def test_skip_of_2_9_gets_its_reason_from_the_exception() -> None:
    log = Log().start()
    log.add(f"Graph break: skip: from user code at:\n{STACK}", "0/0", "graph_breaks")
    trace = 'Traceback (most recent call last):\n  File "/t/torch/_dynamo/exc.py", line 1, in u\n    raise\n'
    log.add(
        f"WON'T CONVERT f {FILE} line 6 \ndue to: \n{trace}torch._dynamo.exc.Unsupported: {REASON}",
        None,
        level="I",
    )
    run, _ = read(log.ended().data)
    (body,) = of(run, GraphBreak)
    (skipped,) = of(run, FrameSkipped)
    assert (body.gb_id, body.outcome) == ("GB0170", "frame-eager")
    assert (skipped.gb_id, skipped.frame) == ("GB0170", CodeRef(FILE, 6, "f"))


def test_skip_without_a_reason_says_so() -> None:
    text = "Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.\n"
    text += f"torch.compile will skip tracing the frame f ({FILE} line 6) and fall back to eager.\n"
    text += f"The graph break occurred in the following user code:\n{STACK}"
    run, tally = read(Log().add(text, "0/0", "graph_breaks").data)
    (body,) = of(run, GraphBreak)
    assert "does not include" in body.gb_type
    assert (body.outcome, body.frame) == ("frame-eager", CodeRef(FILE, 6, "f"))
    assert tally.unread == 0


def test_break_that_2_9_never_reports() -> None:
    trace = 'Traceback (most recent call last):\n  File "/t/torch/_dynamo/exc.py", line 1, in u\n    raise\n'
    log = (
        Log().start().add(f"step triggered compile\n{trace}torch._dynamo.exc.Unsupported: {REASON}")
    )
    stack = f"[<FrameSummary file {FILE}, line 8 in f>]"
    log.add(
        "COMPILING GRAPH due to GraphCompileReason(reason='step_unsupported', "
        f"user_stack={stack}, graph_break=True)",
        "0/0_1",
    )
    run, _ = read(log.ended().data)
    (body,) = of(run, GraphBreak)
    ((event, _),) = list(run.of(GraphBreak))
    assert (body.gb_id, body.outcome) == ("GB0170", "rest-eager")
    assert event.site is not None and event.site.line == 8


def test_loop_of_2_9() -> None:
    old = f"Graph break in user code at {FILE}:8\nGraph Break Reason: {REASON}\nUser code traceback:\n{STACK}"
    words = "Skipping frame because there is a graph break in a for/while loop\n"
    log = Log().start().add(old, "0/0", "graph_breaks")
    log.add(f"{words}<FrameSummary file {FILE}, line 8 in f>", level="I")
    log.add(f"Skipping frame {words}<FrameSummary file {FILE}, line 8 in f> f         {FILE} 6")
    run, _ = read(log.ended().data)
    assert [b.outcome for b in of(run, GraphBreak)] == ["frame-eager"]
    assert [s.cause for s in of(run, FrameSkipped)] == ["graph-break"]


def test_outcome_of_2_9_is_unknown_where_no_line_tells() -> None:
    old = f"Graph break in user code at {FILE}:8\nGraph Break Reason: {REASON}\nUser code traceback:\n{STACK}"
    run, _ = read(Log().add(old, "0/0", "graph_breaks").data)
    assert [b.outcome for b in of(run, GraphBreak)] == ["unknown"]


def test_nothing_to_compile_is_no_skip() -> None:
    run, _ = read(
        Log().start().add("Skipping frame because no content in function call f x 6").ended().data
    )
    assert of(run, FrameSkipped) == []


def override_log(*, frame: str, file: str, line: int) -> Log:
    log = Log().add(
        f"torchdynamo start compiling {frame} {file}:{line}, stack (elided 5 frames):\n"
    )
    again = "Graph break (user stack suppressed due to duplicate graph break) in user code at"
    return log.add(f"{again} {OVERRIDE}:149\nGraph Break Reason: {REASON}", "0/0", "graph_breaks")


def test_override_in_front_of_the_programs_line() -> None:
    log = override_log(frame="forward", file=FILE, line=6)
    stack = f"[<FrameSummary file {FILE}, line 8 in forward>, <FrameSummary file {OVERRIDE}, line 149 in __torch_function__>]"
    log.add(
        f"COMPILING GRAPH due to GraphCompileReason(reason='x', user_stack={stack}, graph_break=True)",
        "0/0_1",
    )
    run, _ = read(log.ended().data)
    ((event, _),) = list(run.of(GraphBreak))
    assert event.site is not None and (event.site.file, event.site.line) == (FILE, 8)
    assert of(run, BreakEcho) == []


def test_override_alone_is_an_echo() -> None:
    log = override_log(frame="__torch_function__", file=OVERRIDE, line=96)
    stack = f"[<FrameSummary file {OVERRIDE}, line 149 in __torch_function__>]"
    log.add(
        f"COMPILING GRAPH due to GraphCompileReason(reason='x', user_stack={stack}, graph_break=True)",
        "0/0_1",
    )
    run, _ = read(log.ended().data)
    assert of(run, GraphBreak) == []
    assert [e.gb_id for e in of(run, BreakEcho)] == ["GB0170"]


def test_reason_with_quotes_and_brackets() -> None:
    reason = "'it\\'s [odd], user_stack=[] \\n'"
    text = f"COMPILING GRAPH due to GraphCompileReason(reason={reason}, user_stack=[<FrameSummary file "
    text += f"/a b/m(1).py, line 3 in <lambda>>, <FrameSummary file {FILE}, line 8 in f>], graph_break=True)"
    run, tally = read(
        Log()
        .start()
        .add(text)
        .add("Step 2: calling compiler function eager", level="I")
        .ended()
        .data
    )
    (graph,) = of(run, GraphCaptured)
    assert (graph.reason, graph.ended_by_break) == ("it's [odd], user_stack=[] \n", True)
    assert tally.unread == 0


def test_reason_that_is_garbled_is_counted() -> None:
    _, tally = read(Log().start().add("COMPILING GRAPH due to GraphCompil", "0/0").ended().data)
    assert tally.unread == 1
    assert tally.samples[0].startswith("COMPILING GRAPH")


def test_resume_functions_are_what_they_resume() -> None:
    log = Log().start("forward", 6).start("torch_dynamo_resume_in_forward_at_8", 8, "1/0")
    log.add("Step 2: calling compiler function eager", "1/0", level="I")
    run, _ = read(log.ended().data)
    assert [g.frame for g in of(run, GraphCaptured)] == [CodeRef(FILE, 6, "forward", resumed_at=8)]


def test_recompiles_verbose() -> None:
    text = f"Recompiling function f in {FILE}:6\n    triggered by the following guard failure(s):\n"
    text += "    guard 0 failures:\n    - 0/1: tensor 'x' size mismatch at index 0. expected 3, actual 4\n    \n"
    text += "    guard 1 failures:\n    - 0/0: tensor 'x' size mismatch at index 0. expected 2, actual 4"
    run, _ = read(Log().add(text, "0/2", "recompiles_verbose").data)
    (body,) = of(run, Recompile)
    assert [entry.compile_id for entry in body.entries] == ["0/1", "0/0"]
    assert body.entries[1].failed[0].expected == "2"


def test_limit_needs_no_flag() -> None:
    text = f"torch._dynamo hit config.recompile_limit (8)\n   function: 'f' ({FILE}:6)\n   last reason: 0/7: "
    text += "tensor 'x' size mismatch at index 0. expected 9, actual 10\n"
    text += (
        'To log all recompilation reasons, use TORCH_LOGS="recompiles".\nTo diagnose, see https://x'
    )
    run, _ = read(Log().add(text, "0/8", level="W").data)
    (body,) = of(run, Recompile)
    assert (body.refused, body.frame) == ("limit", CodeRef(FILE, 6, "f"))
    assert body.entries[0].failed[0].actual == "10"


def test_recompile_that_never_began_was_refused() -> None:
    text = f"Recompiling function f in {FILE}:6\n    triggered by the following guard failure(s):\n    - 0/0: n == 3"
    run, _ = read(Log().start().add(text, "0/1", "recompiles").start(id="1/0").ended().data)
    assert [r.refused for r in of(run, Recompile)] == ["error"]


def test_inferred_recompiles_need_an_entry_to_miss() -> None:
    kept = (
        Log()
        .start()
        .add("Step 2: calling compiler function eager", level="I")
        .start(id="0/1")
        .ended()
    )
    assert [r.inferred for r in of(read(kept.data)[0], Recompile)] == [True]
    given_up = Log().start().add(f"WON'T CONVERT f {FILE} line 6 \ndue to: \n", None, level="I")
    assert of(read(given_up.start(id="0/1").ended().data)[0], Recompile) == []


def test_ids_that_start_again_after_a_reset() -> None:
    run, _ = read(Log().start().broken().start().broken().ended().data)
    assert [event.epoch for event, _ in run.of(GraphBreak)] == [0, 1]
    assert of(run, Recompile) == []


def test_compiled_autograd_ids() -> None:
    log = Log().start(id="!0/1/0").broken(id="!0/1/0_2").ended()
    run, tally = read(log.data)
    assert [event.compile_id for event, _ in run.of(GraphBreak)] == ["!0/1/0_2"]
    assert not tally.cut_head


def test_suppressed_backend_error() -> None:
    trace = 'Traceback (most recent call last):\n  File "/t/torch/_dynamo/x.py", line 1, in u\n    raise\n'
    error = "torch._dynamo.exc.BackendCompilerFailed: backend='toy' raised:\nRuntimeError: no kernel\n\nSet TORCHDYNAMO_VERBOSE=1"
    log = (
        Log()
        .start()
        .add(f"WON'T CONVERT f {FILE} line 6 \ndue to: \n{trace}{error}", None, level="W")
    )
    run, _ = read(log.ended().data)
    (failed,) = of(run, CompileFailed)
    assert (failed.error, failed.backend) == ("BackendCompilerFailed", "toy")
    assert [(s.cause, s.because is not None) for s in of(run, FrameSkipped)] == [("backend", True)]


def test_two_calls_within_a_millisecond() -> None:
    log = Log()
    log.add(f"Recompiling function f in {FILE}:6\n    triggered by the following guard failure(s):\n    - 0/0: n == 3\n"
            f"Recompiling function g in {FILE}:9\n    triggered by the following guard failure(s):\n    - 1/0: n == 3",
            "0/1", "recompiles")  # fmt: skip
    assert [r.frame.function for r in of(read(log.data)[0], Recompile)] == ["f", "g"]


def test_graphs_of_later_stages_and_code() -> None:
    graph = "TRACED GRAPH\n ===== %s =====\n /t/x.py class GraphModule(torch.nn.Module):\n"
    graph += '    def forward(self, arg0: "f32[3]"):\n        mul: "f32[3]" = torch.ops.aten.mul.Tensor(arg0, 2)\n'
    log = Log().start().add(graph % "__compiled_fn_1", artifact="graph_code")
    log.add("Step 2: calling compiler function inductor", level="I")
    log.add(graph % "Forward graph 0", artifact="aot_graphs", level="I")
    log.add(graph % "Backward graph 0", artifact="aot_graphs", level="I")
    log.add(
        "Output code: \nfrom x import y\ncpp_fused_0 = async_compile.cpp_pybinding(['a'], '''\n",
        artifact="output_code",
    )
    run, _ = read(log.ended().data)
    assert [(g.stage, g.ops) for g in of(run, GraphCaptured)] == [
        ("dynamo", 1),
        ("aot_forward", 1),
        ("aot_backward", 1),
    ]
    assert [k.kernels for k in of(run, KernelEmitted)] == [("cpp_fused_0",)]


def test_graph_code_alone_is_a_graph() -> None:
    text = "TRACED GRAPH\n ===== __compiled_fn_1 =====\n x class GraphModule(torch.nn.Module):\n"
    text += '    def forward(self, L_x_: "f32[3]"):\n        l_x_ = L_x_\n        y: "f32[3]" = l_x_ * 2\n        return (y,)\n'
    run, tally = read(Log().add(text, artifact="graph_code").data)
    assert [(g.nodes, g.ops, g.backend) for g in of(run, GraphCaptured)] == [(3, 1, None)]
    assert tally.flags == {"TORCH_LOGS=graph_code"}


FORMATS = {
    "level": lambda line, level: f"{level}:{line}",
    "bare": lambda line, level: line,
    "padded": lambda line, level: f"{level:8s}|6749|{line}",
    "long": lambda line, level: f"2026-11-15 09:50:10,875 torch._dynamo.x {level} {line}",
    "bracketed": lambda line, level: f"[{level}] /t/torch/_dynamo/x.py:53 - {line}",
}
LEVELS = {"V": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR"}


def in_format(data: bytes, name: str) -> bytes:
    """The same log under a custom TORCH_LOGS_FORMAT: a prefix on the first line of a record."""
    out, last = [], ""
    for line in data.decode().splitlines():
        prefix, found, message = line.partition("] ")
        stamp = prefix[:40]
        if not found or line[0] not in LEVELS:
            out.append(line)
            continue
        while message.startswith("[") and "] " in message:
            message = message.partition("] ")[2]
        starts = not message.startswith((" ", "|", "+-")) and message
        begins = stamp + prefix != last or (starts and "TRACE" in message)
        out.append(FORMATS[name](message, LEVELS[line[0]]) if begins else message)
        last = stamp + prefix
    return ("\n".join(out) + "\n").encode()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("program", ["t213.c02_item", "t213.c08_numpy_log"])
def test_custom_formats(name: str, program: str) -> None:
    run, tally = read(in_format(golden(program), name))
    plain, _ = read(golden(program))
    assert "TORCH_LOGS_FORMAT" in tally.flags
    here = [(s.gb_id, s.line, s.column, s.outcome) for s in digest(run).sites]
    assert here == [(s.gb_id, s.line, s.column, s.outcome) for s in digest(plain).sites]
    graphs = [(g.backend, g.ops, g.frame) for g in of(run, GraphCaptured)]
    assert graphs == [(g.backend, g.ops, g.frame) for g in of(plain, GraphCaptured)]


def test_earlier_compilations_of_a_frame_are_those_that_the_log_showed() -> None:
    frames = Frames()
    for compile_id in ("0/0", "0/10", "1/0", "0/2", "0/2_1"):
        title = b"torchdynamo start compiling f /u/a.py:3, stack (elided 5 frames):"
        if compile_id.endswith("_1"):
            title = b"Step 1: torchdynamo start tracing g /u/a.py:9"
        frames.started(LogRecord("V", 1, compile_id, "", title))
    assert [each.compile_id for each in frames.earlier("0/10_1")] == ["0/0", "0/2_1"]
    assert [each.compile_id for each in frames.earlier("0/11")] == ["0/0", "0/2_1", "0/10"]
    assert frames.earlier("2/3") == frames.earlier("1/0") == []
