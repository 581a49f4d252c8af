"""Graphs made up at random, for tests that need many and no torch."""

from __future__ import annotations

import random
from collections.abc import Iterator

from compilescope.record.written_graph import (
    Arg,
    Code,
    Input,
    Items,
    Op,
    Ref,
    TensorKind,
    WrittenGraph,
    names_in,
    names_used,
)

FUNCTIONS = ("torch.sin", "torch.add", "torch.matmul", "torch.relu", "torch.culprit")
SHAPES = ((4, 8), (4, 8), (8, 8), (12,), (2, 4, 8))
DTYPES = ("float32", "float32", "float16", "int64")


def kind_of(dice: random.Random) -> TensorKind:
    return TensorKind(
        dice.choice(SHAPES),
        dice.choice(DTYPES),
        device="cpu",
        grad=dice.random() < 0.3,
        dynamic=(0,) if dice.random() < 0.1 else (),
    )


def made_graph(seed: int, ops: int | None = None, nested: bool = True) -> WrittenGraph:
    """Whatever Dynamo's graphs have: sizes, tuples taken apart, constants, inner graphs."""
    dice = random.Random(seed)
    inputs = [
        Input(
            f"x{at}",
            kind_of(dice),
            fill="saved",
            saved=f"x{at}",
            seed=at,
            attribute=dice.random() < 0.15,
        )
        for at in range(dice.randint(1, 5))
    ]
    if dice.random() < 0.3:
        inputs.append(Input("n", value=3))
    names = [each.name for each in inputs]
    made: list[Op] = []
    graphs = {}
    for at in range(ops or dice.randint(1, 25)):
        roll = dice.random()
        first = dice.choice([name for name in names if name != "n"])
        if roll < 0.1:
            made.append(Op(f"s{at}", "size", "shape", (Ref(first), 0), number=4))
        elif roll < 0.2:
            made.append(Op(f"t{at}", "method", "chunk", (Ref(first), 2, -1)))
            part = Op(
                f"g{at}", "function", "operator.getitem", (Ref(f"t{at}"), 1), tensor=kind_of(dice)
            )
            made.append(part)
        elif roll < 0.25 and nested:
            graphs[f"inner{at}"] = _inner(dice)
            call = "torch.ops.higher_order.wrap"
            args: tuple[Arg, ...] = (Ref(f"inner{at}"), Ref(first))
            made.append(Op(f"w{at}", "function", call, args))
            part = Op(
                f"g{at}", "function", "operator.getitem", (Ref(f"w{at}"), 0), tensor=kind_of(dice)
            )
            made.append(part)
        else:
            made.append(_call(dice, f"v{at}", [Ref(first), Ref(dice.choice(names))]))
        names.append(made[-1].name)
    ends = [op.name for op in made if op.tensor is not None][-dice.randint(1, 3) :]
    return WrittenGraph(
        tuple(inputs), tuple(made), Items("tuple", tuple(map(Ref, ends))), graphs=graphs
    )


def _call(dice: random.Random, name: str, args: list[Arg]) -> Op:
    extra: dict[str, Arg] = {"dim": dice.choice((0, 4, 8))} if dice.random() < 0.3 else {}
    if dice.random() < 0.1:
        extra["dtype"] = Code("torch.float16")
    return Op(name, "function", dice.choice(FUNCTIONS), tuple(args), extra, tensor=kind_of(dice))


def _inner(dice: random.Random) -> WrittenGraph:
    op = _call(dice, "inside", [Ref("given")])
    return WrittenGraph((Input("given", kind_of(dice)),), (op,), Items("tuple", (Ref("inside"),)))


def faults(graph: WrittenGraph) -> Iterator[str]:
    """Why it cannot be run: names that nobody defines, or that two do."""
    known = {each.name for each in graph.inputs} | graph.graphs.keys()
    if len(known) < len(graph.inputs) + len(graph.graphs):
        yield "two inputs of one name"
    for op in graph.ops:
        for name in names_used(op):
            if name not in known:
                yield f"{op.name} uses {name}, which is not there"
        if op.name in known:
            yield f"{op.name} is there twice"
        known.add(op.name)
    for name in names_in(graph.output):
        if name not in known:
            yield f"{name} is returned and not there"
    for inner in graph.graphs.values():
        yield from faults(inner)
