"""What became of each line: real graphs of a program whose every line is known."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import event, run_of
from compilescope.knowledge.analysis.stages.kernels import KernelBlock, OutputCode, read_output_code
from compilescope.knowledge.analysis.stages.line_links import Family, ReadStage
from compilescope.knowledge.analysis.stages.panes import StagePane, stage_panes
from compilescope.knowledge.analysis.stages.printed_graph import (
    portable_graphs,
    read_printed,
    tensor_of,
)
from compilescope.knowledge.analysis.stages.reader import StageReader
from compilescope.knowledge.analysis.stages.staged_graphs import Stage, StagedGraph, staged_graphs
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import CacheAccess, GraphCaptured, KernelEmitted
from compilescope.record.graph import KernelCall
from compilescope.record.run import Run

HERE = Path(__file__).parent
PROGRAM = HERE.parent / "programs" / "stages.py"
# Made by torch 2.13.0+cpu on 2026-11-15 with `torch._inductor.config.cpu_backend = "triton"` from
# y = x @ w; z = F.gelu(y) + 1; z.sum(dim=-1).
TRITON = (HERE / "data" / "triton_output_code.txt").read_text()


def program() -> Any:
    spec = importlib.util.spec_from_file_location("stages_program", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line_of(name: str) -> int:
    lines = PROGRAM.read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"#: {name}"))


def captured(backend: str) -> Run:
    """The network, trained for one step; no cache of torch's is asked."""
    import torch
    import torch._functorch.config
    import torch._inductor.config

    import compilescope

    torch._dynamo.reset()
    x = torch.ones(4, 8)
    w, v = (torch.ones(8, 8, requires_grad=True) for _ in range(2))
    with (
        torch._inductor.config.patch(fx_graph_cache=False),
        torch._functorch.config.patch(enable_autograd_cache=False),
        compilescope.capture() as seen,
    ):
        torch.compile(program().network, backend=backend)(x, w, v).backward()
    torch._dynamo.reset()
    return seen.run


class Stages:
    """The panes of a run's only graph."""

    def __init__(self, run: Run) -> None:
        self.graph = single_graph(run)
        reader = StageReader(run, Sources(run))
        self.panes = {p.title: p for p in stage_panes(self.graph, self.graph.stages, reader)}

    def kin(self, name: str) -> set[int]:
        """The numbers of a line of the program."""
        number = line_of(name)
        return set(next(s.kin for s in self.panes["Your source"].lines if s.number == number))

    def lit(self, name: str, title: str) -> list[str]:
        """What lights up in a pane when a line of the program is pointed at."""
        return _lit(self.panes[title], self.kin(name))


def single_graph(run: Run) -> StagedGraph:
    (graph,) = staged_graphs(run)
    return graph


def _lit(pane: StagePane, kin: set[int]) -> list[str]:
    return [
        line.text.strip()
        for line in pane.lines
        if kin & set(line.kin) and not line.text.strip().startswith("#")
    ]


def targets(lines: list[str]) -> list[str]:
    """`torch.ops.aten.mm.default(...)` -> `mm`."""
    return [line.split("torch.ops.aten.")[1].split(".")[0] for line in lines if "aten." in line]


@pytest.fixture(scope="module")
def aot() -> Stages:
    return Stages(captured("aot_eager"))


@pytest.fixture(scope="module")
def inductor() -> Stages:
    if not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("no C++ compiler for Inductor")
    return Stages(captured("inductor"))


@pytest.fixture(autouse=True)
def fresh_dynamo(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "torch" in request.keywords:
        import torch

        torch._dynamo.reset()


@pytest.mark.torch
def test_a_line_lights_exactly_the_nodes_that_came_from_it(aot: Stages) -> None:
    for name, nodes in {
        "first": ["y:"],
        "sine": ["a:"],
        "second": ["b:"],
        "cosine": ["cos:", "c:"],
        "total": ["sum_1:"],
    }.items():
        assert [line.split(" ")[0] for line in aot.lit(name, "Dynamo graph")] == nodes


@pytest.mark.torch
def test_a_call_lights_what_came_from_the_function_it_called(aot: Stages) -> None:
    assert aot.kin("call") == aot.kin("cosine")


@pytest.mark.torch
def test_lines_of_the_source_do_not_light_each_other(aot: Stages) -> None:
    names = ("first", "sine", "second", "cosine", "total")
    for name in names:
        others = [other for other in names if other != name and aot.kin(other) & aot.kin(name)]
        assert others == []


@pytest.mark.torch
def test_forward_and_backward_are_linked(aot: Stages) -> None:
    assert targets(aot.lit("sine", "AOT forward graph")) == ["sin"]
    assert targets(aot.lit("sine", "AOT backward graph")) == ["cos", "mul"]
    assert targets(aot.lit("cosine", "AOT forward graph")) == ["cos", "mul"]
    assert set(targets(aot.lit("cosine", "AOT backward graph"))) == {"mul", "sin", "neg"}
    assert set(targets(aot.lit("second", "AOT backward graph"))) <= {"permute", "t", "mm"}
    assert targets(aot.lit("second", "AOT backward graph")).count("mm") == 2
    assert targets(aot.lit("total", "AOT backward graph")) == ["expand"]


@pytest.mark.torch
def test_two_ops_of_one_line_are_told_apart(aot: Stages) -> None:
    dynamo = aot.panes["Dynamo graph"]
    cos = next(set(line.kin) for line in dynamo.lines if line.text.startswith("cos:"))
    assert targets(_lit(aot.panes["AOT forward graph"], cos)) == ["cos"]


@pytest.mark.torch
def test_inputs_are_linked_by_position(aot: Stages) -> None:
    dynamo = aot.panes["Dynamo graph"]
    w = next(set(line.kin) for line in dynamo.lines if line.text.startswith("l_w_:"))
    assert [line.split(":")[0] for line in _lit(aot.panes["AOT forward graph"], w)] == ["primals_2"]
    # The value came from the caller, not from the line that uses it.
    assert not w & aot.kin("first")


@pytest.mark.torch
def test_every_op_is_linked(aot: Stages) -> None:
    for title in ("Dynamo graph", "AOT forward graph", "AOT backward graph"):
        unlinked = [x.text for x in aot.panes[title].lines if " = " in x.text and not x.kin]
        assert unlinked == []


@pytest.mark.torch
def test_source_of_a_program_without_any_break_is_kept(aot: Stages) -> None:
    numbers = [line.number for line in aot.panes["Your source"].lines if line.number]
    assert numbers == [*range(line_of("cosine") - 1, line_of("cosine") + 1)] + [
        *range(line_of("first") - 1, line_of("total") + 1)
    ]


@pytest.mark.torch
def test_kernels_are_kin_to_all_that_was_fused_into_them(inductor: Stages) -> None:
    sine = inductor.lit("sine", "Kernels forward")
    calls = [line for line in sine if line.startswith("cpp_fused") and "async_compile" not in line]
    definitions = [line for line in sine if "async_compile" in line]
    assert [call.split("(")[0] for call in calls] == ["cpp_fused_sin_0"]
    assert [line.split(" ")[0] for line in definitions] == ["cpp_fused_sin_0"]
    cosine, total = (inductor.lit(name, "Kernels forward") for name in ("cosine", "total"))
    assert cosine == total
    assert any(line.startswith("cpp_fused_cos_mul_sum_1(") for line in cosine)
    assert not set(sine) & {line for line in cosine if line.startswith("cpp_fused")}


@pytest.mark.torch
def test_calls_of_library_kernels_are_told_apart(inductor: Stages) -> None:
    first, second = (inductor.lit(name, "Kernels forward") for name in ("first", "second"))
    assert len(first) == len(second) == 1
    assert first != second
    assert "extern_kernels.mm(" in first[0] and "extern_kernels.mm(" in second[0]
    backward = inductor.lit("second", "Kernels backward")
    assert sum("extern_kernels.mm(" in line for line in backward) == 2


@pytest.mark.torch
def test_post_grad_keeps_the_links(inductor: Stages) -> None:
    for direction in ("forward", "backward"):
        pane = inductor.panes[f"Post-grad {direction} graph"]
        if not pane.lines:
            assert pane.note.endswith(f"AOT {direction} graph")
            continue
        assert [x.text for x in pane.lines if " = torch.ops" in x.text and not x.kin] == []


@pytest.mark.torch
def test_without_torchs_notes_lines_still_match(aot: Stages) -> None:
    """As from a warm cache, or from a log: the text is all there is."""
    run = captured("aot_eager")
    bare = [
        msgspec.structs.replace(e, body=msgspec.structs.replace(e.body, origins=None, graph=None))
        if isinstance(e.body, GraphCaptured)
        else e
        for e in run.events
    ]
    stages = Stages(Run(run.header, bare, run.artifacts))
    assert targets(stages.lit("sine", "AOT backward graph")) == ["cos", "mul"]
    assert targets(stages.lit("cosine", "AOT forward graph")) == ["cos", "mul"]
    assert [line.split(" ")[0] for line in stages.lit("sine", "Dynamo graph")] == ["a:"]


def test_stages_are_gathered_by_compilation() -> None:
    def seen(stage: str, number: int, compile_id: str | None, **fields: object) -> Any:
        body = GraphCaptured(stage=stage, text=f"{stage}-{number}")  # type: ignore[arg-type]
        return event(body, number=number, compile_id=compile_id, **fields)

    run = run_of(
        seen("dynamo", 1, "0/0"),
        seen("dynamo", 2, "1/0_1"),
        seen("aot_inference", 3, "0/0"),
        seen("aot_forward", 4, "1/0_1"),
        seen("post_grad", 5, "1/0_2"),
        event(CacheAccess("fx_graph", "hit"), number=6, compile_id="1/0"),
        seen("dynamo", 7, "0/0", epoch=1),
        seen("aot_inference", 8, None),
        seen("post_grad", 9, None),
        seen("aot_inference", 10, None),
    )
    graphs = staged_graphs(run)
    kinds = [[stage.kind for stage in graph.stages] for graph in graphs]
    assert kinds == [
        ["dynamo", "aot_inference"],
        ["dynamo", "aot_forward", "post_grad"],
        ["dynamo"],
        ["aot_inference", "post_grad"],
        ["aot_inference"],
    ]
    assert [graph.cached for graph in graphs] == [False, True, False, False, False]


def test_output_code_tells_which_pass_it_is_of() -> None:
    run = run_of(
        event(GraphCaptured(stage="post_grad"), number=1, compile_id="0/0"),
        event(KernelEmitted("x"), number=2, compile_id="0/0"),
    )
    name = run.artifacts.put("# AOT ID: ['3_backward']\n", "py")
    bodies = [
        msgspec.structs.replace(e, body=KernelEmitted(name))
        if isinstance(e.body, KernelEmitted)
        else e
        for e in run.events
    ]
    graph = single_graph(Run(run.header, bodies, run.artifacts))
    assert [stage.direction for stage in graph.stages] == ["backward", "backward"]


PRINTED = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[s77, 4][4, 1]cpu", L_n_: "Sym(s27)", L_y_: "i64[4][1]cpu"):
        l_x_ = L_x_
        l_y_ = L_y_

        # File: /p/a.py:3 in f, code: x += y
        l_x_ += l_y_;  x: "f32[s77, 4][4, 1]cpu" = l_x_;  l_x_ = None

        # No stacktrace found for following nodes
        x[0] = 2;  setitem = x;  setitem = None
        split = x.split(2);  x = None
        a: "bf16[2, Max(1, s77)][4, 1]cpu" = split[0];  split = None

        # ac_graph_id: 2 - PREFER_RECOMPUTE File: /p/b c.py:14 in <lambda>, code: g(x, "a:3 in b")
        b: "DTensor(f32[2][1]cuda:0, Shard(0))" = torch.ops.aten.mm.default(a, a);  a = None
        pow_1 = 1e-08 ** b
        inner = self.inner
        cond = torch.ops.higher_order.cond(pow_1, inner, (b,));  inner = b = None
        return (cond, l_y_)

    class inner(torch.nn.Module):
        def forward(self, a: "f32[2]"):
            # File: /p/a.py:9 in g, code: return a.sin()
            sin: "f32[2]" = a.sin();  a = None
            return (sin,)
"""


def test_printed_graph_is_read() -> None:
    printed = read_printed(PRINTED)
    assert [(n.name, n.op, n.target, n.arguments) for n in printed.nodes] == [
        ("l_x_", "placeholder", "L_x_", ""),
        ("L_n_", "placeholder", "L_n_", ""),
        ("l_y_", "placeholder", "L_y_", ""),
        ("x", "call_function", "_operator.iadd", "l_x_, l_y_"),
        ("setitem", "call_function", "_operator.setitem", "x[0], 2"),
        ("split", "call_method", "split", "x, 2"),
        ("a", "call_function", "_operator.getitem", "split, 0"),
        ("b", "call_function", "aten.mm.default", "a, a"),
        ("pow_1", "call_function", "_operator.pow", "1e-08, b"),
        ("inner", "get_attr", "inner", ""),
        ("cond", "call_function", "higher_order.cond", "pow_1, inner, (b,)"),
        ("a", "placeholder", "a", ""),
        ("sin", "call_method", "sin", "a"),
    ]
    assert [node.place for node in printed.nodes][3:9] == [
        ("/p/a.py", 3), None, None, None, ("/p/b c.py", 14), ("/p/b c.py", 14)
    ]  # fmt: skip
    assert printed.returned == ["cond", "l_y_"]
    assert [node.scope for node in printed.nodes][-2:] == [1, 1]
    assert not any("None" in line.text for line in printed.lines)


def test_symbolic_sizes_are_unknown_not_zero() -> None:
    known, within = portable_graphs(read_printed(PRINTED))
    tensors = {node.name: node.outputs for node in known.nodes}
    assert tensors["a"][0].shape == (2, "Max(1, s77)")
    assert tensors["a"][0].size_bytes is None
    assert tensors["l_y_"][0].size_bytes == 32
    assert tensors["L_n_"] == ()
    assert (tensors["b"][0].dtype, tensors["b"][0].device) == ("float32", "cuda:0")
    assert within.nodes[0].outputs[0].size_bytes == 8
    assert tensor_of("f32[][]cpu") is not None


def test_sizes_that_are_formulas_keep_their_commas_and_brackets() -> None:
    tensor = tensor_of("f32[s7 + ((s7//2)), Max(1, Min(s7, 9)), 32][32*s7, 32, 1]cpu")
    assert tensor is not None
    assert tensor.shape == ("s7 + ((s7//2))", "Max(1, Min(s7, 9))", 32)
    assert tensor.stride == ("32*s7", 32, 1)


def test_a_number_is_known_to_be_no_tensor() -> None:
    text = 'class f(torch.nn.Module):\n    def forward(self, x: "f32[s0][1]cpu"):\n'
    text += '        size: "Sym(s0)" = torch.ops.aten.sym_size.int(x, 0)\n'
    nodes = portable_graphs(read_printed(text))[0].nodes
    assert [(node.name, node.no_tensor) for node in nodes] == [("x", False), ("size", True)]


@pytest.mark.parametrize("cut", range(0, len(PRINTED), 37))
def test_text_cut_anywhere_is_read(cut: int) -> None:
    read_printed(PRINTED[:cut])
    read_printed(PRINTED[cut:])


def test_triton_kernels_say_what_they_compute() -> None:
    code = read_output_code(TRITON)
    by_kernel = {block.kernel: block for block in code.blocks}
    fused = next(b for b in code.blocks if b.kernel.startswith("triton_") and b.nodes)
    assert fused.nodes == ("mul", "mul_1", "erf", "add", "mul_2", "add_1", "sum_1")
    assert by_kernel["extern_kernels.mm"].sources == ("y",)
    call = next(line for line in code.lines if ".run(" in line.text)
    assert call.block is not None
    assert code.blocks[call.block].sources == ("gelu", "z", "sum_1")
    shown = "\n".join(line.text for line in code.lines)
    assert "@triton.jit" in shown and "tl.store" in shown and "def call(self, args):" in shown
    assert "import triton" not in shown and "benchmark_compiled_module" not in shown
    assert code.left_out["imports and helpers"] > 50


def test_notes_of_capture_win_over_comments() -> None:
    name = "triton_per_fused_add_gelu_sum_0"
    code = read_output_code(TRITON, [KernelCall(name, ("sum_1",))])
    assert {b.nodes for b in code.blocks if b.kernel == name} == {("sum_1",)}


def test_code_of_an_unknown_form_is_shown_as_it_stands() -> None:
    code = read_output_code("int main() {\n}\n")
    assert [line.text for line in code.lines] == ["int main() {", "}"]
    assert not code.left_out


def test_code_without_any_graph() -> None:
    """Of a damaged trace the code may be all that is left."""
    code = OutputCode(blocks=[KernelBlock("k0"), KernelBlock("k1")])
    read = ReadStage(Stage("kernels", event(GraphCaptured("dynamo")), None), code=code)
    Family([read], None)
    assert read.blocks == [(), ()]
