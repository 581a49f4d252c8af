"""The sections on graphs and guards: what they say, and that they stay small."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from builders import ROOT, event, run_of
from compilescope.knowledge.analysis.stages.reader import StageReader
from compilescope.knowledge.analysis.stages.staged_graphs import staged_graphs
from compilescope.knowledge.source.spots import Sources
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import (
    Body,
    CacheAccess,
    GraphBreak,
    GraphCaptured,
    Guard,
    GuardSet,
    KernelEmitted,
)
from compilescope.record.graphs.statistics import Amount
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report.blocks import Block, Fold, Item, Panes, Paragraph, Table, plain
from compilescope.report.document import report_document
from compilescope.report.graph_panes import graph_texts
from compilescope.report.places import shown_bytes, shown_flops
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from compilescope.report.sections import graphs, guards
from samples import RUNS, big_run

CODE = CodeRef(f"{ROOT}/model.py", 6, "forward")


def graph_text(ops: int, mark: str = "") -> str:
    lines = [
        f'        # File: {ROOT}/model.py:{7 + n % 9} in forward, code: x = x + {n}{mark}\n'
        f'        add_{n}: "f32[4, 4][4, 1]cpu" = l_x_ + {n};  l_x_ = None'
        for n in range(ops)
    ]  # fmt: skip
    head = 'class GraphModule(torch.nn.Module):\n    def forward(self, l_x_: "f32[4, 4][4, 1]cpu"):'
    return "\n".join([head, *lines, f"        return (add_{ops - 1},)"])


def made(*bodies: tuple[Body, str], artifacts: MemoryArtifacts | None = None) -> Run:
    run = run_of(
        *(event(body, number=n, compile_id=ident) for n, (body, ident) in enumerate(bodies))
    )
    return Run(run.header, run.events, artifacts or MemoryArtifacts())


def items(blocks: Iterable[Block]) -> list[Item]:
    return [block for block in blocks if isinstance(block, Item)]


def all_text(block: Any) -> str:
    return str(msgspec.to_builtins(block))


def panes(item: Item) -> Panes | None:
    folds = [block for block in item.blocks if isinstance(block, Fold)]
    return next((b for fold in folds for b in fold.blocks if isinstance(b, Panes)), None)


@pytest.mark.parametrize("name", RUNS)
def test_every_format_draws_the_sections(name: str) -> None:
    document = report_document(Reading(RUNS[name], full=True))
    for draw in (to_text, to_markdown, to_html):
        assert draw(document)


def test_absent_where_nothing_was_compiled() -> None:
    reading = Reading(RUNS["empty"], full=True)
    assert graphs.SECTION.build(reading) == []
    assert guards.SECTION.build(reading) == []


def test_a_graph_without_text_says_so() -> None:
    run = made((GraphCaptured(stage="dynamo", ops=3, frame=CODE, backend="eager"), "0/0"))
    (item,) = items(graphs.SECTION.build(Reading(run, full=True)))
    assert item.anchor == f"graph-{staged_graphs(run)[0].event.id}"
    assert "Its code was not recorded" in all_text(item)
    assert "eager doesn't use AOTAutograd" in all_text(item)


def test_table_links_graphs_and_their_breaks() -> None:
    broken = GraphBreak(gb_type="Data-dependent branching", gb_id="GB0170", frame=CODE)
    graph = GraphCaptured(stage="dynamo", ops=3, frame=CODE, backend="b", ended_by_break=True)
    run = made((broken, "0/0"), (graph, "0/0_1"))
    reading = Reading(run, full=True)
    table, *_ = graphs.SECTION.build(reading)
    assert isinstance(table, Table)
    (row,) = table.rows
    assert [plain(cell) for cell in row] == [
        "1", "model.py:6 forward", "0/0_1", "3", "not counted", "not counted", "b", "graph break"
    ]  # fmt: skip
    assert row[1][0].target == f"graph-{staged_graphs(run)[0].event.id}"
    assert row[-1][0].target == reading.digest.sites[0].fingerprint


def test_figures_and_panes_of_a_graph() -> None:
    artifacts = MemoryArtifacts()
    text = artifacts.put(graph_text(5), "py")
    body = GraphCaptured(stage="dynamo", text=text, ops=5, frame=CODE, backend="inductor")
    (item,) = items(
        graphs.SECTION.build(Reading(made((body, "0/0"), artifacts=artifacts), full=True))
    )
    words = all_text(item)
    assert "add 5" in words and "float32 5 on cpu" in words
    assert "inputs 64 B, intermediates 256 B, outputs 64 B" in words
    assert "none (5 ops, no counted kind)" in words
    shown = panes(item)
    assert shown is not None
    assert [pane.title for pane in shown.panes] == ["Your source", "Dynamo graph"]
    source, code = shown.panes
    # The file was not kept: the lines that nodes name are all there is.
    assert [line.number for line in source.lines] == [None, 7, 8, 9, 10, 11]
    first = source.lines[1]
    lit = [line.text for line in code.lines if set(line.kin) & set(first.kin)]
    assert lit == ["# model.py:7 in forward: x = x + 0", 'add_0: "f32[4, 4][4, 1]cpu" = l_x_ + 0']


def test_graphs_that_say_the_same_are_shown_once() -> None:
    artifacts = MemoryArtifacts()
    text = artifacts.put(graph_text(5), "py")
    body = GraphCaptured(stage="dynamo", text=text, ops=5, frame=CODE)
    # What Inductor counts is no difference.
    bodies: list[tuple[Body, str]] = []
    for number, ident in enumerate(("0/0", "1/0", "2/0")):
        code = f"# AOT ID: ['{number}_inference']\ndef call(args):\n    extern_kernels.mm(a, b)"
        bodies += [(body, ident), (KernelEmitted(artifacts.put(code, "py")), ident)]
    other = GraphCaptured(stage="dynamo", text=text, ops=5, frame=CODE, ended_by_break=True)
    run = made(*bodies, (other, "3/0"), artifacts=artifacts)
    table, _, same, alone = graphs.SECTION.build(Reading(run, full=True))
    assert isinstance(table, Table) and isinstance(same, Item) and isinstance(alone, Item)
    assert [plain(row[0]) for row in table.rows] == ["1 ×3", "2"]
    assert plain(table.rows[0][2]) == "0/0 and 2 more"
    assert "3 graphs: 0/0, 1/0, 2/0" in all_text(same)
    assert [same.anchor, *same.also] == [f"graph-{g.event.id}" for g in staged_graphs(run)[:3]]
    assert alone.also == ()


def test_what_equal_graphs_differ_in_is_named() -> None:
    artifacts = MemoryArtifacts()
    text = artifacts.put(graph_text(5), "py")
    bodies: list[tuple[Body, str]] = [
        (
            GraphCaptured(
                stage="dynamo",
                text=text,
                ops=5,
                frame=CodeRef(CODE.file, line, "forward"),
                backend=backend,
                ended_by_break=line == 20,
            ),
            f"{number}/0",
        )
        for number, (line, backend) in enumerate(((6, "a"), (6, "a"), (20, "b")))
    ]
    run = made(*bodies, artifacts=artifacts)
    table, _, item = graphs.SECTION.build(Reading(run, full=True))
    assert isinstance(table, Table)
    assert [plain(cell) for cell in table.rows[0]][1] == "model.py:6 forward and 1 more"
    assert [plain(cell) for cell in table.rows[0]][-2:] == [
        "a / b",
        "end of function ×2, graph break",
    ]
    text = all_text(item)
    assert "model.py:6 forward ×2, model.py:20 forward" in text and "a ×2, b" in text


def test_graphs_without_text_are_never_called_equal() -> None:
    body = GraphCaptured(stage="dynamo", ops=3, frame=CODE)
    run = made((body, "0/0"), (body, "1/0"))
    assert len(items(graphs.SECTION.build(Reading(run, full=True)))) == 2


def test_the_same_ops_on_other_shapes_are_linked() -> None:
    artifacts = MemoryArtifacts()
    small = artifacts.put(graph_text(5), "py")
    large = artifacts.put(graph_text(5).replace("[4, 4][4, 1]", "[8, 4][4, 1]"), "py")
    bodies = [GraphCaptured(stage="dynamo", text=text, ops=5) for text in (small, large)]
    run = made((bodies[0], "0/0"), (bodies[1], "0/1"), artifacts=artifacts)
    first, second = items(graphs.SECTION.build(Reading(run, full=True)))
    assert "Same ops as" not in all_text(first)
    (link,) = (
        span
        for block in second.blocks
        if isinstance(block, Paragraph)
        for span in block.words
        if span.target
    )
    assert link.target == first.anchor and link.text == "graph 1"


def test_inputs_and_outputs_are_folded() -> None:
    names = [f"primals_{n}" for n in range(1, 7)]
    inputs = ", ".join(f'{name}: "f32[4][1]cpu"' for name in names)
    outputs = "\n".join(f"            {name},  # Output" for name in names)
    text = (
        f"class GraphModule(torch.nn.Module):\n    def forward(self, {inputs}):\n"
        '        add: "f32[4][1]cpu" = torch.ops.aten.add.Tensor(primals_1, 1)\n'
        f"        return (\n{outputs}\n        )\n"
    )
    artifacts = MemoryArtifacts()
    body = GraphCaptured(stage="dynamo", text=artifacts.put(text, "py"), ops=1, frame=CODE)
    document = report_document(Reading(made((body, "0/0"), artifacts=artifacts), full=True))
    for drawn in (to_text(document), to_markdown(document)):
        assert "# 6 inputs" in drawn and "# 6 outputs" in drawn
        assert "aten.add.Tensor" in drawn and "primals_4" not in drawn


def test_large_graphs_leave_room_for_small_ones() -> None:
    artifacts = MemoryArtifacts()
    sizes = {"0/0": 5, "1/0": 3000, "2/0": 5}
    bodies: list[tuple[Body, str]] = []
    for number, (ident, ops) in enumerate(sizes.items()):
        for stage in ("dynamo", "aot_inference", "post_grad"):
            text = artifacts.put(graph_text(ops, f"{stage} {number}"), "py")
            bodies.append((GraphCaptured(stage=stage, text=text, ops=ops, frame=CODE), ident))  # type: ignore[arg-type]
    run = made(*bodies, artifacts=artifacts)
    staged = staged_graphs(run)
    texts = graph_texts(staged, StageReader(run, Sources(run)), budget=60_000)
    small, large, last = (texts[graph] for graph in staged)
    assert not small.cut and not small.left_out and not last.cut and not last.left_out
    assert large.cut and large.left_out == ["AOT graph", "Post-grad graph"]
    assert sum(len(line.text) for pane in large.panes for line in pane.lines) < 120_000


def test_what_has_no_room_is_named() -> None:
    run = big_run(graphs=250, events=10)
    found = items(graphs.SECTION.build(Reading(run, full=True)))
    assert len(found) == 250
    assert all(panes(item) for item in found)
    reader = StageReader(run, Sources(run))
    texts = graph_texts(staged_graphs(run), reader, budget=1_000_000).values()
    assert all(text.panes for text in texts) and any(text.left_out for text in texts)
    shown = sum(len(line.text) for text in texts for pane in text.panes for line in pane.lines)
    assert 0 < shown < 3_000_000
    crowded = next(text for text in texts if text.left_out)
    (remark,) = graphs._elsewhere(staged_graphs(run)[0], crowded)
    assert "Omitted for size: " in all_text(remark) and "kernels " in all_text(remark)


def test_cached_and_missing_stages_are_explained() -> None:
    run = made(
        (GraphCaptured(stage="dynamo", ops=1, backend="inductor"), "0/0"),
        (GraphCaptured(stage="aot_forward", ops=1), "0/0"),
        (GraphCaptured(stage="aot_backward", ops=1), "0/0"),
        (GraphCaptured(stage="post_grad", ops=1), "0/0"),
        (KernelEmitted("none", kernels=("k",)), "0/0"),
        (CacheAccess("fx_graph", "hit"), "0/0"),
        (GraphCaptured(stage="dynamo", ops=1, backend="aot_eager"), "1/0"),
        (GraphCaptured(stage="aot_inference", ops=1), "1/0"),
        (GraphCaptured(stage="post_grad", ops=1), "2/0"),
    )
    inductor, eager, alone = map(all_text, items(graphs.SECTION.build(Reading(run, full=True))))
    assert "torch's on-disk cache" in inductor
    assert "aot_eager doesn't seem to use Inductor" in eager
    assert "Dynamo's own graph was not recorded" in alone


def test_hostile_text_is_only_text() -> None:
    html = to_html(report_document(Reading(RUNS["hostile"], full=True)))
    assert "<script>window" not in html and "<img" not in html


def test_amounts() -> None:
    assert shown_bytes(Amount(0)) == "0 B"
    assert shown_bytes(Amount(1536)) == "1.5 KB"
    assert shown_bytes(Amount(0, 2)) == "unknown"
    assert shown_flops(Amount(2_500_000_000)) == "2.5 GFLOPs"
    assert shown_flops(Amount(10, 1)) == "at least 10 FLOPs"


def test_guards_by_kind_and_frame() -> None:
    artifacts = MemoryArtifacts()
    kept = artifacts.put(msgspec.json.encode([Guard("L['x']", "TYPE_MATCH")] * 3).decode(), "json")
    bodies: list[tuple[Body, str]] = [
        (GuardSet(3, {"TYPE_MATCH": 2, "ID_MATCH": 1}, kept, CODE), f"{n}/0") for n in range(250)
    ]
    reading = Reading(made(*bodies, artifacts=artifacts), full=True)
    first, table, fold, rest = guards.SECTION.build(reading)
    assert isinstance(first, Paragraph) and isinstance(table, Table) and isinstance(fold, Fold)
    assert plain(first.words) == "750 guards of 250 compilations."
    assert [[plain(cell) for cell in row] for row in table.rows] == [
        ["TYPE_MATCH", "500", "67 %", "250"],
        ["ID_MATCH", "250", "33 %", "250"],
    ]
    assert len(fold.blocks) == 1, "200 compilations of one function, with equal guards"
    assert "200 compilations, same 3 guards" in all_text(fold)
    assert "50 compilations with 150 guards not shown" in all_text(rest)


@pytest.mark.torch
def test_real_graph_from_capture_to_page() -> None:
    import torch

    import compilescope

    def scaled(x: Any, w: Any) -> Any:
        y = x @ w
        return torch.sin(y) * 2

    torch._dynamo.reset()
    with compilescope.capture() as seen:
        torch.compile(scaled, backend="aot_eager")(torch.ones(4, 4), torch.ones(4, 4))
    torch._dynamo.reset()
    reading = Reading(seen.run, full=True)
    (item,) = items(graphs.SECTION.build(reading))
    assert "matmul 1" in all_text(item) and "128 FLOPs" in all_text(item)
    document = report_document(reading)
    for draw in (to_text, to_markdown, to_html):
        drawn = draw(document)
        assert "torch.ops.aten.mm.default" in drawn and "y = x @ w" in drawn
