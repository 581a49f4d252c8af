"""A graph that can be written as source and run again: what a repro script is made of.

Plain data: a process writes it, another reads it as JSON and makes it smaller, without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec


class Ref(msgspec.Struct, frozen=True, tag="ref"):
    """The value of an input or of an operation."""

    name: str


class Code(msgspec.Struct, frozen=True, tag="code"):
    """A constant that is no JSON value, as Python source: `torch.float32`."""

    text: str


class Items(msgspec.Struct, frozen=True, tag="items"):
    """A list or a tuple."""

    kind: Literal["list", "tuple"]
    items: tuple[Arg, ...]


class WrittenDict(msgspec.Struct, frozen=True, tag="table"):
    """A dictionary."""

    pairs: tuple[tuple[Arg, Arg], ...]


class Slice(msgspec.Struct, frozen=True, tag="slice"):
    """`a:b:c`"""

    start: Arg
    stop: Arg
    step: Arg


Arg = Ref | Code | Items | WrittenDict | Slice | bool | int | float | str | None


class TensorKind(msgspec.Struct, frozen=True):
    """What a tensor is, without its numbers."""

    shape: tuple[int, ...]
    dtype: str
    """As torch calls it: `float32`."""
    stride: tuple[int, ...] | None = None
    """None is contiguous."""
    device: str = "cpu"
    grad: bool = False
    dynamic: tuple[int, ...] = ()
    """Dimensions whose size was a symbol."""


Fill = Literal["saved", "random", "ones", "zeros"]


class Input(msgspec.Struct, frozen=True):
    """A value that comes from outside."""

    name: str
    tensor: TensorKind | None = None
    value: Arg = None
    """Where it is no tensor."""
    attribute: bool = False
    """It belongs to the module; else it is an argument."""
    fill: Fill = "random"
    """Where a tensor's numbers come from."""
    saved: str = ""
    """The name in the graph that was captured, whose numbers it has."""
    seed: int = 0
    low: int = 0
    high: int = 0
    """Whole numbers are drawn from low up to, and with, high."""


class Op(msgspec.Struct, frozen=True):
    """A call."""

    name: str
    kind: Literal["function", "method", "module", "size"]
    """`size`: a dimension of a tensor, `x.shape[0]`."""
    target: str
    """What to call: `torch.nn.functional.linear`, the name of a method or of a module."""
    args: tuple[Arg, ...] = ()
    kwargs: dict[str, Arg] = {}
    tensor: TensorKind | None = None
    """What it returned when it was captured, if that was one tensor."""
    number: int | float | bool | None = None
    """What it returned, if that was a number."""
    note: str = ""
    """The user's line."""


class WrittenGraph(msgspec.Struct, frozen=True):
    """Inputs, calls in order, and what is returned."""

    inputs: tuple[Input, ...] = ()
    ops: tuple[Op, ...] = ()
    output: Arg = None
    graphs: dict[str, WrittenGraph] = {}
    """Graphs that operations are given, by the name that the module has for them."""
    modules: dict[str, str] = {}
    """Modules that are called, as expressions that make them."""
    imports: dict[str, str] = {}
    """Name -> the line that brings it, for what is not found under `torch`."""
    folders: tuple[str, ...] = ()
    """Where Python finds what is imported."""

    def input_named(self, name: str) -> Input | None:
        return next((each for each in self.inputs if each.name == name), None)


def names_in(*args: Arg) -> Iterator[str]:
    """The values that arguments refer to, in order, with repetitions."""
    for arg in args:
        if isinstance(arg, Ref):
            yield arg.name
        elif isinstance(arg, Items):
            yield from names_in(*arg.items)
        elif isinstance(arg, WrittenDict):
            for key, value in arg.pairs:
                yield from names_in(key, value)
        elif isinstance(arg, Slice):
            yield from names_in(arg.start, arg.stop, arg.step)


def names_used(op: Op) -> Iterator[str]:
    return names_in(*op.args, *op.kwargs.values())


def mapped(arg: Arg, change: Callable[[Arg], Arg]) -> Arg:
    """`change` applied to everything in it that holds nothing else."""
    if isinstance(arg, Items):
        return Items(arg.kind, tuple(mapped(item, change) for item in arg.items))
    if isinstance(arg, WrittenDict):
        return WrittenDict(tuple((mapped(k, change), mapped(v, change)) for k, v in arg.pairs))
    if isinstance(arg, Slice):
        return Slice(mapped(arg.start, change), mapped(arg.stop, change), mapped(arg.step, change))
    return change(arg)


def mapped_op(op: Op, change: Callable[[Arg], Arg]) -> Op:
    args = tuple(mapped(arg, change) for arg in op.args)
    kwargs = {name: mapped(arg, change) for name, arg in op.kwargs.items()}
    return msgspec.structs.replace(op, args=args, kwargs=kwargs)
