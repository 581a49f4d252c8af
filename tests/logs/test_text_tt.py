"""tt-xla's log: eras, levels, files without bodies, failures, cuts and processes at once."""

from __future__ import annotations

import re

import pytest

from compilescope.record.bodies import GraphCompiled, GraphDumped, LogLine
from compilescope.record.run import Run
from logs.consoles import golden, of, read

END = b"------------------ END OF MLIR MODULE ------------------\n"
STAGES = ("vhlo", "shlo", "shlo_frontend", "ttir", "ttnn")


def line(text: str, *, thread: str = "F1C70480", level: str = "1", ms: int = 0) -> bytes:
    stamp = f"2026-08-21 09:00:03.{ms:03d} (   3.{ms:03d}s)"
    return f"{stamp} [        {thread}]      module_builder.cc:542      {level}| {text}\n".encode()


def body(name: str = "SyncTensorsGraph.8", ops: int = 2) -> bytes:
    lines = [f"module @{name} attributes {{mhlo.is_dynamic = false}} {{", "  func.func @main() {"]
    lines += [f'    %{n} = "vhlo.add_v1"(%a, %b) : () -> () loc("add.{n}")' for n in range(ops)]
    return ("\n".join([*lines, "    return", "  }", "}"]) + "\n").encode()


def graph(stages: tuple[str, ...] = STAGES, *, thread: str = "F1C70480", ops: int = 2) -> bytes:
    return b"".join(
        line(f"MLIR Module {stage}:", thread=thread) + body(ops=ops) + END for stage in stages
    )


def graphs(run: Run) -> list[GraphCompiled]:
    return of(run, GraphCompiled)


def test_graphs_are_counted_by_their_first_header() -> None:
    run, tally = read(graph() + graph(STAGES + ("ttnn_runtime",)) + graph(STAGES[:3]))
    assert [len(g.stages) for g in graphs(run)] == [5, 6, 3]
    assert graphs(run)[0].stages[0].ops == 2
    assert (tally.unread, tally.interleaved, tally.cut_tail) == (0, "", False)


@pytest.mark.parametrize("tag", ["[1,0]<stderr>:", "[rank0]: ", "(EngineCore pid=12) ", "0: "])
def test_tagged_lines(tag: str) -> None:
    data = b"".join(tag.encode() + part for part in graph().splitlines(keepends=True))
    run, tally = read(data)
    assert [[s.name for s in g.stages] for g in graphs(run)] == [list(STAGES)]
    assert [s.ops for s in graphs(run)[0].stages] == [2] * 5
    assert tally.interleaved == ""


def test_interleaved_ranks_with_tags_come_apart() -> None:
    zero = [b"[1,0]<stderr>:" + part for part in graph(ops=2).splitlines(keepends=True)]
    one = [b"[1,1]<stderr>:" + part for part in graph(ops=3).splitlines(keepends=True)]
    mixed = b"".join(part for pair in zip(zero, one, strict=False) for part in pair)
    rest = b"".join(zero[len(one) :] + one[len(zero) :])
    run, tally = read(mixed + rest)
    assert {(e.rank, tuple(s.ops for s in g.stages)) for e, g in run.of(GraphCompiled)} == {
        (0, (2,) * 5),
        (1, (3,) * 5),
    }
    assert tally.interleaved == "tagged"


def test_interleaved_bodies_without_tags_are_ambiguous() -> None:
    one = line("MLIR Module vhlo:", thread="AAAA") + body()
    other = line("MLIR Module vhlo:", thread="BBBB") + body() + END
    run, tally = read(one[:-20] + b"\n" + other + END)
    assert len(graphs(run)) == 2
    assert tally.interleaved == "ambiguous"
    assert not graphs(run)[0].stages[0].whole


def test_threads_whose_modules_do_not_mix_are_clean() -> None:
    data = b"".join(
        line(f"MLIR Module {stage}:", thread=thread) + body() + END
        for stage in STAGES
        for thread in ("AAAA", "BBBB")
    )
    run, tally = read(data)
    assert [len(g.stages) for g in graphs(run)] == [5, 5]
    assert tally.interleaved == ""


def test_log_file_has_headers_without_bodies() -> None:
    data = b"".join(line(f"MLIR Module {stage}:") for stage in STAGES * 3)
    run, tally = read(data)
    assert [len(g.stages) for g in graphs(run)] == [5, 5, 5]
    assert graphs(run)[0].stages[0].ops is None
    assert tally.flags == {"TTXLA_LOGGER_LEVEL=DEBUG", "TTXLA_LOGGER_FILE"}
    assert not tally.cut_tail


def test_dumps_of_single_passes_are_no_stages() -> None:
    dump = b"// -----// IR Dump Before Canonicalizer (canonicalize) //----- //\n" + body() + b"\n\n"
    data = line("MLIR Module vhlo:") + body() + END + dump * 3
    data += line("MLIR Module shlo:") + body() + END + dump
    run, tally = read(data)
    assert [[s.name for s in g.stages] for g in graphs(run)] == [["vhlo", "shlo"]]
    assert "TTXLA_LOGGER_LEVEL=VERBOSE" in tally.flags
    assert of(run, GraphDumped) == []


def test_failed_compile_names_its_stage() -> None:
    diagnostic = b"loc(\"add.6\"): error: failed to legalize operation 'stablehlo.sort'\n"
    data = graph(STAGES[:3]) + diagnostic
    data += line("Failed to convert from SHLO to TTIR module", level="ERR") + graph()
    run, _ = read(data)
    failed, fine = graphs(run)
    assert failed.failed_stage == "ttir"
    assert "failed to legalize operation" in failed.error
    assert "Failed to convert" in failed.error
    assert (fine.error, fine.failed_stage) == ("", "")


def test_error_outside_a_compile_and_warnings() -> None:
    data = (
        line("Device not found", level="ERR") + line("num_partitions not found 3", level="WARN") * 2
    )
    run, _ = read(data)
    assert {(n.level, n.text, n.count) for n in of(run, LogLine)} == {
        ("error", "Device not found", 1),
        ("warning", "num_partitions not found 3", 2),
    }


def test_cut_head() -> None:
    whole = line("MLIR Module vhlo:") + body(ops=4) + END + graph(STAGES[1:]) + graph()
    run, tally = read(whole[200:])
    assert tally.cut_head
    first, second = graphs(run)
    assert (first.cut, second.cut) == ("head", "")
    assert [s.name for s in first.stages] == ["", *STAGES[1:]]
    run, tally = read(graph(STAGES[2:]) + graph())
    assert tally.cut_head
    assert [g.cut for g in graphs(run)] == ["head", ""]


def test_cut_tail() -> None:
    data = graph() + line("MLIR Module vhlo:") + body()[:-30]
    run, tally = read(data)
    assert tally.cut_tail
    assert [(g.cut, g.stages[-1].whole) for g in graphs(run)] == [("", True), ("tail", False)]


def test_names_of_2025() -> None:
    names = ("VHLO Module:", "SHLO Module:", "SHLO Module after frontend StableHLO pipeline:")
    data = b"".join(line(name) + body() + END for name in names)
    run, _ = read(data * 2)
    assert [[s.name for s in g.stages] for g in graphs(run)] == [
        ["vhlo", "shlo", "shlo_frontend"]
    ] * 2


def test_builds() -> None:
    assert read(graph())[1].build == "release"
    assert read(line("ModuleBuilder::buildModule") + graph())[1].build == "debug"
    assert read(line("Something", level="INFO"))[1].build == ""


def test_huge_constants_do_not_matter() -> None:
    constant = (
        b'    %9 = "vhlo.constant_v1"() <{value = dense<"0x'
        + b"ab" * 2_000_000
        + b'">}> loc("c.1")\n'
    )
    text = body()
    data = (
        line("MLIR Module vhlo:") + text.replace(b"    return\n", constant + b"    return\n") + END
    )
    run, _ = read(data)
    assert graphs(run)[0].stages[0].ops == 3


def test_locations_that_lead_to_themselves() -> None:
    locs = b'#loc1 = loc(callsite(#loc2 at #loc1))\n#loc2 = loc("f"(#loc2))\n'
    text = body().replace(b'loc("add.0")', b"loc(#loc1)")
    run, _ = read(line("MLIR Module vhlo:") + locs + text + END)
    assert graphs(run)[0].places == ()


def test_fused_and_inline_locations() -> None:
    inline = b'loc(callsite("forward"("/home/me/m.py":7:4) at "main"("/home/me/m.py":20:0)))'
    fused = b'loc(fused["add", "g"("/home/me/m.py":9:0)])'
    text = body().replace(b'loc("add.0")', inline).replace(b'loc("add.1")', fused)
    run, tally = read(line("MLIR Module vhlo:") + text + END)
    places = {(p.frame.line, p.frame.function) for p in graphs(run)[0].places}
    assert places == {(7, "forward"), (9, "g")}
    assert "XLA_HLO_DEBUG=1" in tally.flags


def test_joined_with_what_torch_xla_announced() -> None:
    block = golden("xla_openxla.c00_clean")
    announced = re.search(
        rb"\nCompilation Analysis: =+\n.*?\nCompilation Analysis: =+\n", block, re.S
    )
    assert announced is not None
    run, tally = read(announced[0] + graph())
    (one,) = graphs(run)
    assert (one.system, one.cause) == ("tt-xla", "dynamo is compiling a FX graph to HLO")
    assert len(one.hash) >= 31 and len(one.stages) == 5
    assert tally.formats == {"torch-xla", "tt-xla"}
