"""torch_xla's blocks and dumps: old words, levels, cuts and mixtures."""

# Lines of logs are as long as they are.
# ruff: noqa: E501

from __future__ import annotations

import pytest

from compilescope.record.bodies import GraphCompiled, GraphDumped, GraphExecuted, LogLine
from logs.consoles import golden, of, read

RULE = "=" * 80
FRAMES = (
    "sync (/venv/lib/python3.11/site-packages/torch_xla/torch_xla.py:87)",
    "main (/home/me/t.py:14)",
)


def block(
    kind: str = "Compilation", cause: str = "user mark_step", *, frames: tuple[str, ...] = FRAMES
) -> bytes:
    lines = [RULE, f"{kind} Cause", f"  {cause}", "Graph Info: ", "  Graph Hash: c74c3b91b855b2"]
    lines += ["  Number of Graph Inputs: 35", "  Number of Graph Outputs: 107"]
    lines += ["Python Frame Triggered Execution: ", *(f"  {frame}" for frame in frames)]
    lines += ["-" * 80, RULE]
    return ("\n" + "".join(f"{kind} Analysis: {text}\n" for text in lines)).encode()


@pytest.mark.parametrize(
    "cause",
    [
        "user mark_step",
        "mark_step in parallel loader at step end",
        "mark_step when exiting a profiler StepTrace region",
        "mark_step when dynamo processing input graphs",
        "torch_xla.compile",
        "torch_xla.compile clear the pending graph prior calling the target function",
        "most likely user code trying to access tensor value before mark_step",
    ],
)
def test_causes_of_all_releases(cause: str) -> None:
    run, tally = read(block(cause=cause))
    (graph,) = of(run, GraphCompiled)
    assert (graph.cause, graph.inputs, graph.outputs) == (cause, 35, 107)
    assert tally.flags == {"PT_XLA_DEBUG_LEVEL=1"}


def test_stack_is_outermost_first_and_blames_the_program() -> None:
    run, _ = read(block())
    ((event, _),) = list(run.of(GraphCompiled))
    assert [frame.line for frame in event.stack] == [14, 87]
    assert event.site is not None and event.site.file == "/home/me/t.py"


def test_executions_add_up() -> None:
    run, tally = read((block() + block("Execution") * 3) + block("Execution") * 2)
    assert [body.count for body in of(run, GraphExecuted)] == [5]
    assert tally.flags == {"PT_XLA_DEBUG_LEVEL=2"}


def test_block_behind_what_a_program_printed() -> None:
    run, _ = read(b"step 3 loss " + block().lstrip(b"\n"))
    assert len(of(run, GraphCompiled)) == 1


def test_cut_blocks_are_told_and_counted() -> None:
    whole = block()
    for at in range(160, len(whole) - 220, 97):
        run, tally = read(whole[:at])
        assert len(of(run, GraphCompiled)) == 1
        assert tally.cut_tail
        assert tally.unread == 1
    run, tally = read(whole[300:])
    assert tally.cut_head
    assert of(run, GraphCompiled)[0].cut == "head"


def test_a_block_within_another() -> None:
    one, two = block(), block(cause="torch_xla.compile")
    run, tally = read(one[:400] + b"\n" + two)
    assert [g.cause for g in of(run, GraphCompiled)][-1] == "torch_xla.compile"
    assert tally.unread >= 1


def test_tagged_blocks_of_two_processes() -> None:
    def tagged(tag: bytes, data: bytes) -> list[bytes]:
        return [tag + part for part in data.splitlines(keepends=True)]

    one = tagged(b"[1,0]<stderr>:", block())
    two = tagged(b"[1,1]<stderr>:", block(cause="torch_xla.compile"))
    mixed = b"".join(part for pair in zip(one, two, strict=True) for part in pair)
    run, tally = read(mixed)
    assert {(e.rank, g.cause) for e, g in run.of(GraphCompiled)} == {
        (0, "user mark_step"),
        (1, "torch_xla.compile"),
    }
    assert (tally.unread, tally.interleaved) == (0, "tagged")


def test_frames_that_stop() -> None:
    run, _ = read(block(frames=(*FRAMES, "..........")))
    [(event, _)] = run.of(GraphCompiled)
    assert len(event.stack) == len(FRAMES)


def test_profiler_lines_are_counted() -> None:
    text = b"pt-xla-profiler: CompileTime too frequent: %d counts during 12 steps\n"
    run, tally = read(text % 21 + text % 23)
    assert [(n.system, n.count) for n in of(run, LogLine)] == [("torch_xla", 2)]
    assert "PT_XLA_DEBUG=1" in tally.flags


HLO = b"""HloModule SyncTensorsGraph.8, entry_computation_layout={(f32[2]{0})->(f32[2]{0})}

ENTRY %SyncTensorsGraph.8 (p0.1: f32[2]) -> (f32[2]) {
  %p0.1 = f32[2]{0} parameter(0), metadata={op_type="xla__device_data" source_file="/home/me/m.py" source_line=7}
  %add.6 = f32[2]{0} add(f32[2]{0} %p0.1, f32[2]{0} %p0.1), metadata={op_type="aten__add" op_name="aten__add" source_file="/home/me/m.py" source_line=8}
  ROOT %tuple.7 = (f32[2]{0}) tuple(f32[2]{0} %add.6)
}
"""


def test_hlo_text() -> None:
    run, tally = read(HLO + b"done\n")
    (dump,) = of(run, GraphDumped)
    assert (dump.form, dump.name, dump.kinds) == ("hlo", "SyncTensorsGraph.8", {"add": 1})
    assert [(p.frame.file, p.frame.line) for p in dump.places] == [("/home/me/m.py", 8)]
    assert tally.formats == {"hlo-dump"}


def test_saved_graphs_are_counted_by_hash() -> None:
    saved = b"[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n  main (/home/me/m.py:8)\n\n"
    saved += b"Hashes: (abc, def)\n\n## BEGIN_GRAPH\n" + HLO + b"\n## END_GRAPH\n\n"
    run, _ = read(saved * 3)
    assert [(d.hashes, d.count) for d in of(run, GraphDumped)] == [(("abc", "def"), 3)]
    assert of(run, GraphCompiled) == []


def test_saved_stablehlo_with_locations() -> None:
    module = b'#loc1 = loc("/home/me/m.py":8:0)\nmodule @G {\n  func.func @main() {\n'
    module += b"    %0 = stablehlo.add %a, %b : tensor<2xf32> loc(#loc1)\n  }\n}\n"
    run, _ = read(b"## BEGIN_GRAPH\n" + module + b"## END_GRAPH\n")
    (dump,) = of(run, GraphDumped)
    assert (dump.form, dump.name, dump.ops) == ("mlir", "G", 1)
    assert [p.frame.line for p in dump.places] == [8]


def test_damage_never_raises() -> None:
    data = golden("xla_lazy.c02_item")
    for at in range(0, len(data), 311):
        read(data[at:])
        read(data[:at])


@pytest.mark.parametrize("size", ["9" * 400, "1.2.3", "." * 9, "7" * 9])
def test_a_size_of_any_length(size: str) -> None:
    head = "Post Compilation Analysis: "
    lines = [f"{head}{'=' * 80}", f"{head}Graph input size: {size} GB", f"{head}{'=' * 80}"]
    assert read("\n".join(lines).encode()) is not None
