"""The graphs of a run that preflight judges."""

from __future__ import annotations

from builders import event, run_of
from compilescope.knowledge.analysis.preflight import recorded_graphs
from compilescope.record.bodies import GraphCaptured
from compilescope.record.graph import Graph, Node, encode_graph

_PRINTED = """\
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2]"):
        # File: /u/a.py:3 in forward, code: y = x.sin()
        y: "f32[2]" = torch.ops.aten.{op}.default(x);  x = None
        return (y,)
"""


def test_backward_graphs_where_the_text_of_dynamos_is_lost() -> None:
    """Of a damaged run: the first graph that can be read has the numbers then."""
    run = run_of()
    dynamo = run.artifacts.put(
        encode_graph(Graph((Node("x", "placeholder", "x"), Node("y", "call_function", "sin")))),
        "json",
    )
    stages = {"aot_joint": "sin", "aot_backward": "cos"}
    texts = {name: run.artifacts.put(_PRINTED.format(op=op), "txt") for name, op in stages.items()}
    captured = [
        GraphCaptured(stage="dynamo", graph=dynamo, text="gone"),
        *(GraphCaptured(stage=name, text=text) for name, text in texts.items()),
    ]
    kept = run.artifacts
    run = run_of(*(event(body, compile_id="0/0") for body in captured))
    run.artifacts = kept
    found, missing = recorded_graphs(run)
    assert [graph.stage for graph in found] == ["dynamo", "aot_backward"] and missing == []
    (line,) = {n.frame.line for n in found[1].graph.nodes if n.frame is not None}
    assert line == 3
