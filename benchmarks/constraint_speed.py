"""How long constraints take to check a large graph, and whether the time grows with its size alone.

    python benchmarks/constraint_speed.py [--nodes 100000] [--repeat 3] [--json]

The graph is made up and looks like a transformer's: a weight and a block of eight nodes (linear,
view, transpose, matmul, softmax, getitem, add, in-place add) again and again, with storages, ATen
calls and lines.
Times are CPU microseconds of this process for each node and constraint, the median of the repeats;
`grows` is the time a node at full size, divided by that at a quarter of it: 1 is linear. `whole` is
`check_graph` with all constraints of the device. No torch is needed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from compilescope.backends.device_files import shipped_devices
from compilescope.knowledge.rules.hardware.checks import check_graph, constraints_of
from compilescope.knowledge.rules.hardware.constraint import Breach, Constraint
from compilescope.knowledge.rules.hardware.memory import peak_memory
from compilescope.record.graph import Call, Graph, Node, TensorInfo
from compilescope.record.stack import Frame

MOST_US = 10.0


class Maker:
    """Nodes one after the other, each with a storage of its own unless it is a view."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.storages = 0

    def tensor(self, shape: tuple[int, ...], storage: int | None = None) -> TensorInfo:
        if storage is None:
            storage, self.storages = self.storages, self.storages + 1
        stride: list[int] = []
        step = 1
        for size in reversed(shape):
            stride.insert(0, step)
            step *= size
        return TensorInfo(shape, "float32", tuple(stride), "cpu", 4 * step, storage, 4 * step)

    def add(self, target: str, result: TensorInfo, inputs: tuple[str, ...], *ops: str) -> str:
        number = len(self.nodes)
        known = {node.name: node.outputs for node in self.nodes[-12:]}
        given = tuple(t for name in inputs for t in known.get(name, ()))
        calls = tuple(Call(op, given, (result,), {"groups": 1}) for op in ops)
        line = Frame("model.py", number % 500 + 1, "forward", source=f"y = step_{number % 500}(x)")
        kind = "placeholder" if target == "placeholder" else "call_function"
        name = f"n{number}"
        node = Node(name, kind, target, inputs, (result,), line, calls=calls or None)
        self.nodes.append(node)
        return name


def make_graph(nodes: int) -> Graph:
    maker = Maker()
    x = maker.add("placeholder", maker.tensor((8, 64, 120)), ())
    while len(maker.nodes) < nodes:
        weight = maker.add("placeholder", maker.tensor((120, 120)), ())
        made = maker.tensor((8, 64, 120))
        linear = maker.add(
            "torch._C._nn.linear", made, (x, weight), "aten.t.default", "aten.addmm.default"
        )
        seen = maker.tensor((8, 64, 4, 30), made.storage)
        view = maker.add("view", seen, (linear,), "aten.view.default")
        turned = TensorInfo(
            (8, 4, 64, 30), "float32", (7680, 30, 120, 1), "cpu", 245760, made.storage, 245760
        )
        turn = maker.add("transpose", turned, (view,), "aten.transpose.int")
        scores = maker.tensor((8, 4, 64, 64))
        product = maker.add("_operator.matmul", scores, (turn, turn), "aten.bmm.default")
        soft = maker.add(
            "torch.nn.functional.softmax",
            maker.tensor((8, 4, 64, 64)),
            (product,),
            "aten._softmax.default",
        )
        part = maker.add(
            "_operator.getitem",
            maker.tensor((8, 64, 64), maker.storages - 1),
            (soft,),
            "aten.select.int",
        )
        out = maker.add("_operator.add", maker.tensor((8, 64, 120)), (x, part), "aten.add.Tensor")
        x = maker.add("_operator.iadd", maker.nodes[-1].outputs[0], (out, x), "aten.add_.Tensor")
    maker.nodes.append(Node("output", "output", "output", (x,)))
    return Graph(tuple(maker.nodes))


def cost_us(work: Callable[[], Any], nodes: int, repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e6 * statistics.median(times) / nodes


def _checked(constraint: Constraint, graph: Graph) -> list[Breach]:
    return list(constraint.check(graph))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    large, small = make_graph(asked.nodes), make_graph(asked.nodes // 4)
    rows: list[dict[str, Any]] = []

    def measure(device: str, what: str, work: Callable[[Graph], Any]) -> None:
        full = cost_us(lambda: work(large), len(large.nodes), asked.repeat)
        part = cost_us(lambda: work(small), len(small.nodes), asked.repeat)
        rows.append({"device": device, "what": what, "us": full, "grows": full / part})

    measure("-", "peak_memory", peak_memory)
    for device in shipped_devices():
        constraints = constraints_of(device)
        for constraint in constraints:
            measure(device.name, constraint.id, partial(_checked, constraint))
        measure(device.name, "whole", partial(check_graph, constraints=constraints))
        rows[-1]["found"] = len(check_graph(large, constraints))
        rows[-1]["constraints"] = len(constraints)
    if asked.json:
        print(json.dumps({"nodes": len(large.nodes), "rows": rows}, indent=2))
    else:
        print(f"{len(large.nodes)} nodes")
        for row in rows:
            found = f"  {row['found']} breaches" if "found" in row else ""
            line = f"{row['device']:10} {row['what']:12} {row['us']:6.2f} us"
            print(f"{line}  grows {row['grows']:.2f}{found}")
    return 1 if any(row["us"] / row.get("constraints", 1) > MOST_US for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
