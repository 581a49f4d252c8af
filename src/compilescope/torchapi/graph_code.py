"""A graph as Python source that stands on its own: classes, imports, and inputs by their shapes.

Weights are not written, only how large they are. What cannot be written raises Unwritable.
"""

from __future__ import annotations

import math
import operator
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch.fx import GraphModule, Node

_WORD = re.compile(r"\w+")
_KNOWN = {
    "inf": "from math import inf",
    "nan": "from math import nan",
    "NoneType": "NoneType = type(None)",
    "torch": "import torch",
    "device": "from torch import device",
    "fx_pytree": "import torch.fx._pytree as fx_pytree",
    "pytree": "import torch.utils._pytree as pytree",
}


class Unwritable(Exception):
    """Why there is no source."""


@dataclass
class GraphCode:
    """The source of one graph."""

    imports: dict[str, str] = field(default_factory=dict)
    """Name -> the line that brings it."""
    classes: list[str] = field(default_factory=list)
    """Inner graphs first."""
    inputs: list[str] = field(default_factory=list)
    """One expression each."""
    dynamic: bool = False
    """Numbers that are inputs are symbols: everything must be compiled as dynamic."""


def graph_code(module: GraphModule, name: str = "Graph") -> GraphCode:
    """A class called `name`, and calls of a function `tensor` for its inputs."""
    code = GraphCode()
    sizes = _sizes_of_inputs(module)
    loose = _write_class(module, name, code, sizes)
    code.classes[-1] = _with_plain_numbers(code.classes[-1], module)
    code.dynamic = bool(loose)
    for node in module.graph.nodes:
        if node.op == "placeholder" and (node not in sizes or node in loose):
            code.inputs.append(_input(node))
    return code


def _write_class(
    module: GraphModule, name: str, code: GraphCode, sizes: Mapping[Node, str]
) -> list[Node]:
    """Returns the inputs that are numbers and no size of another input."""
    python = module.graph.python_code("self")
    body = python.src
    words = set(_WORD.findall(body))
    for used, thing in python.globals.items():
        if used in words:  # FX lists some that any graph might use.
            code.imports[used] = _import_line(used, thing)
    loose = [node for node, size in sizes.items() if not size]
    for node, size in sizes.items():
        if size:
            body = _without_parameter(body, node, size)
    setup = list(_attributes(module, name, code))
    lines = [f"class {name}(torch.nn.Module):"]
    if setup:
        lines += ["    def __init__(self):", "        super().__init__()"]
        lines += [f"        {line}" for line in setup] + [""]
    lines.append(textwrap.indent(textwrap.dedent(body).strip(), "    "))
    code.classes.append("\n".join(lines))
    return loose


def _attributes(module: GraphModule, name: str, code: GraphCode) -> Iterator[str]:
    """How the constants, graphs and modules that the code names come to be."""
    made: set[str] = set()
    for node in module.graph.nodes:
        if node.op not in ("get_attr", "call_module") or node.target in made:
            continue
        made.add(node.target)
        *path, _ = node.target.split(".")
        for depth in range(1, len(path) + 1):
            owner = ".".join(path[:depth])
            if owner not in made:
                made.add(owner)
                yield f"self.{owner} = torch.nn.Module()"
        value = operator.attrgetter(node.target)(module)
        yield f"self.{node.target} = {_attribute(value, f'{name}_{len(made)}', code)}"


def _attribute(value: Any, name: str, code: GraphCode) -> str:
    if isinstance(value, GraphModule):
        _write_class(value, name, code, {})
        return f"{name}()"
    if isinstance(value, torch.nn.Module):
        children = next(value.children(), None)
        if children is not None or not type(value).__module__.startswith("torch.nn"):
            raise Unwritable(f"the graph holds a module of type {type(value).__name__}")
        return f"torch.nn.{value!r}.train({value.training})"
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    raise Unwritable(f"the graph holds an object of type {type(value).__name__}")


def _import_line(name: str, thing: Any) -> str:
    if name in _KNOWN:
        return _KNOWN[name]
    if isinstance(thing, ModuleType):
        return f"import {thing.__name__} as {name}"
    if isinstance(thing, float):
        return f"{name} = float('{thing}')"
    home, path = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if not home or not path or "<" in path or home == "__main__":
        raise Unwritable(f"the graph calls {path or name}, which cannot be imported")
    root, _, rest = path.partition(".")
    if not rest:
        return f"from {home} import {root} as {name}"
    return f"from {home} import {root}; {name} = {path}"


def _without_parameter(body: str, node: Node, size: str) -> str:
    """A size that torch passes beside its tensor is read off the tensor."""
    head, _, rest = body.partition("):\n")
    before, _, parameters = head.partition("(")
    kept = [part for part in parameters.split(", ") if part.split(" ")[0] != node.target]
    return f"{before}({', '.join(kept)}):\n    {node.name} = {size}\n{rest}"


def _with_plain_numbers(text: str, module: GraphModule) -> str:
    """Dynamo passes a number as a tensor and reads it off. In a script it is a number again."""
    for node in module.graph.nodes:
        if _is_number(node):
            text = re.sub(rf"\b{node.name}\.item\(\)", node.name, text)
    return text


def _is_number(node: Node) -> bool:
    return node.op == "placeholder" and bool(
        getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False)
    )


def _sizes_of_inputs(module: GraphModule) -> dict[Node, str]:
    """Inputs that are symbolic numbers -> the size of another input that each is, or nothing."""
    places: dict[str, str] = {}
    numbers: list[tuple[Node, str]] = []
    for node in module.graph.nodes:
        value = node.meta.get("example_value")
        if node.op != "placeholder":
            continue
        if isinstance(value, torch.Tensor):
            for dim, size in enumerate(value.shape):
                if _is_symbolic(size):
                    places.setdefault(str(size), f"{node.target}.shape[{dim}]")
        elif isinstance(value, torch.SymInt):
            numbers.append((node, str(value)))
    return {node: places.get(symbol, "") for node, symbol in numbers}


def _input(node: Node) -> str:
    value = node.meta.get("example_value", node.meta.get("val"))
    if _is_number(node):
        read = (user.meta.get("example_value") for user in node.users if user.target == "item")
        value = next(read, value)
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        hint = value.node.hint
        if hint is None:
            raise Unwritable(f"the input {node.name} is a number that only the program knows")
        return repr(hint)
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    raise Unwritable(f"the input {node.name} is of type {type(value).__name__}")


def _tensor(value: torch.Tensor) -> str:
    if value.layout is not torch.strided or value.is_quantized:
        raise Unwritable(f"a tensor of layout {value.layout}")
    shape = tuple(_number(size) for size in value.shape)
    stride = tuple(_number(size) for size in value.stride())
    words = [repr(shape), str(value.dtype)]
    if stride != _contiguous(shape):
        words.append(f"stride={stride!r}")
    if value.device.type != "cpu":
        words.append(f"device={str(value.device)!r}")
    if value.requires_grad:
        words.append("grad=True")
    dynamic = tuple(at for at, size in enumerate(value.shape) if _is_symbolic(size))
    if dynamic:
        words.append(f"dynamic={dynamic!r}")
    return f"tensor({', '.join(words)})"


def _is_symbolic(size: Any) -> bool:
    """A symbol that a guard has since made a number is none."""
    return not isinstance(size, int) and not size.node.expr.is_number


def _number(size: Any) -> int:
    if isinstance(size, int):
        return size
    hint = size.node.hint if _is_symbolic(size) else size.node.expr
    if hint is None:
        raise Unwritable(f"the size {size} is one that only the program knows")
    return int(hint)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(max(size, 1) for size in shape[at + 1 :]) for at in range(len(shape)))
