"""The model's graphs from Python: what Dynamo captured, and what AOTAutograd made of it."""

import torch
from model import Block

import compilescope
from compilescope.record.bodies import GraphCaptured

compiled = torch.compile(Block(), backend="aot_eager")
with compilescope.capture() as run:
    compiled(torch.randn(8, 32)).sum().backward()

print(f"{len(run.graphs)} FX graphs, because of {len(run.breaks)} graph break:")
for graph in run.graphs:
    print(f"  {graph.compile_id}: {graph.ops} ops")

print("\nThe first one, as Dynamo captured it:")
for node in run.graphs[0].graph.nodes:
    if node.op.startswith("call"):
        print(f"  {node.name} = {node.target}")

print("\nAnd what AOTAutograd made of each:")
for event, body in run.run.of(GraphCaptured):
    if body.stage.startswith("aot"):
        print(f"  {event.compile_id}: {body.stage}, {body.ops} ops")
