"""Dynamo's graphs as torch prints them, in a fraction of the time that torch takes for it.

torch's printer is most of what it costs to keep a small graph, and a program with a thousand graph
breaks has thousands of those. The one here knows the usual nodes and gives up on a graph with any
other. It is believed once it has printed some graphs of the process as torch did, letter by letter;
until then, and for ever where it differed once, torch's own text is kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx
from torch.fx import GraphModule

from compilescope.base.processes.interruptions import let_through

try:
    from torch.fx.graph import (
        CodeGen,
        _get_qualified_name,
        _is_from_torch,
        _parse_stack_trace,
        dtype_abbrs,
        inplace_methods,
        magic_methods,
    )

    _knows_torch = True
except ImportError as error:
    let_through(error)
    _knows_torch = False

_ENOUGH = 16
"""Graphs printed alike, after which ours are believed. Chosen: most programs have fewer graphs."""
_LARGEST_TRIED = 200
"""Nodes of a graph that is printed twice to see. Chosen: that is over in a millisecond or two."""
_LITERALS = frozenset(
    {
        *(int, float, bool, complex, str, type(None), type(...)),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format),
    }
)
"""Types whose values torch prints as their `repr`."""
_SPECIAL = ("custom", "recompute", "ac_graph_id", "is_wrapped")
"""Notes on a node that torch prints in ways of their own."""
_names: dict[Any, str] = {}
"""torch's functions -> what torch calls them in code."""


class _Unusual(Exception):
    """torch alone knows how to print it."""


class GraphPrinter:
    """Finds out whether it prints as this torch does."""

    def __init__(self) -> None:
        self._alike = 0
        self._differs = not _knows_torch

    def text(self, module: GraphModule | None, torchs: Callable[[], str]) -> str:
        """The graph as `torchs` prints it."""
        if module is None or self._differs:
            return torchs()
        if self._alike >= _ENOUGH:
            return printed(module) or torchs()
        text = torchs()
        if len(module.graph.nodes) <= _LARGEST_TRIED:
            ours = printed(module)
            self._differs = ours is not None and ours != text
            self._alike += ours is not None
        return text


def printed(module: GraphModule) -> str | None:
    """As `print_readable` does with strides and devices; None where something is unusual."""
    try:
        head, lines = _head(module), list(_lines(module))
    except _Unusual:
        return None
    body = "".join(f"        {line}\n" if line else "\n" for line in lines)
    return f"class {module._get_name()}(torch.nn.Module):\n    {head}\n{body}"


def _head(module: GraphModule) -> str:
    inputs = module.graph.find_nodes(op="placeholder")
    words = ["self", *(f"{node.target}{_annotation(node)}" for node in inputs)]
    return f"def forward({', '.join(words)}):"


def _lines(module: GraphModule) -> Iterator[str]:
    graph = module.graph
    if type(graph._codegen) is not CodeGen or graph._codegen._body_transformer is not None:
        raise _Unusual
    if any(isinstance(child, GraphModule) for child in module.children()):
        raise _Unusual
    freed = _freed(graph)
    told = ""
    begun = False
    for node in graph.nodes:
        if any(node.meta.get(note) for note in _SPECIAL):
            raise _Unusual
        if node.op == "placeholder":
            if node.args or not str(node.target).isidentifier():
                raise _Unusual
            if node.target != node.name:
                yield f"{node.name} = {node.target}"
                begun = True
            continue
        if node.op == "output":
            if node.type is not None:
                raise _Unusual
            yield f"return {_argument(node.args[0])}"
            continue
        summary = _summary(node.meta.get("stack_trace"))
        if summary != told:
            told = summary
            if begun:
                yield ""
            yield summary
        begun = True
        last = freed.get(node, ())
        ends = f";  {' = '.join(last)} = None" if last else ""
        yield f"{_statement(node)}{ends}"


def _freed(graph: fx.Graph) -> dict[fx.Node, list[str]]:
    """Node -> the values that nobody uses after it."""
    freed: dict[fx.Node, list[str]] = {}
    seen: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                freed.setdefault(node, []).append(used.name)
        if not node.users:
            freed.setdefault(node, []).append(node.name)
    return freed


def _summary(trace: str | None) -> str:
    parsed = _parse_stack_trace(trace) if trace else None
    told = parsed.get_summary_str() if parsed else "No stacktrace found for following nodes"
    return f"# {told}"


def _statement(node: fx.Node) -> str:
    target: Any = node.target
    result = f"{node.name}{_annotation(node)}"
    if node.op == "get_attr":
        return f"{result} = {_attribute('self', target)}"
    if node.op == "call_module":
        return f"{result} = {_attribute('self', target)}({_arguments(node.args, node.kwargs)})"
    if node.op == "call_method":
        method = _attribute(_argument(node.args[0]), target)
        return f"{result} = {method}({_arguments(node.args[1:], node.kwargs)})"
    if node.op != "call_function":
        raise _Unusual
    if getattr(target, "__module__", "") == operator.add.__module__:
        given = [_argument(arg) for arg in node.args]
        if target.__name__ in magic_methods:
            return f"{result} = {magic_methods[target.__name__].format(*given)}"
        if target.__name__ in inplace_methods:
            return f"{inplace_methods[target.__name__].format(*given)};  {result} = {given[0]}"
    return f"{result} = {_function(target)}({_arguments(node.args, node.kwargs)})"


def _function(target: Any) -> str:
    """Others than torch's own are printed under names that torch makes up."""
    name = _names.get(target)
    if name is None:
        if not _is_from_torch(target):
            raise _Unusual
        # Only torch's own are kept: they live as long as the process.
        name = _names[target] = _get_qualified_name(target)
    return name


def _attribute(base: str, path: str) -> str:
    if not all(part.isidentifier() for part in path.split(".")):
        raise _Unusual
    return f"{base}.{path}"


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    named = [f"{name} = {_argument(value)}" for name, value in kwargs.items()]
    return ", ".join([*map(_argument, args), *named])


def _argument(value: Any) -> str:
    kind = type(value)
    if kind is fx.Node:
        return str(value.name)
    if kind in _LITERALS:
        return repr(value)
    if kind is slice:
        return f"slice({', '.join(map(_argument, (value.start, value.stop, value.step)))})"
    if kind is tuple:
        inner = ", ".join(map(_argument, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(map(_argument, value))}]"
    raise _Unusual


def _annotation(node: fx.Node) -> str:
    meta = node.meta
    value = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
    if isinstance(value, torch.Tensor):
        plain = type(value) is torch.Tensor or isinstance(value, torch._subclasses.FakeTensor)
        dtype = dtype_abbrs.get(value.dtype)
        if not plain or dtype is None or value.layout is not torch.strided:
            raise _Unusual
        return f': "{dtype}{_sizes(value.shape)}{_sizes(value.stride())}{value.device}"'
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return f': "Sym({CodeGen._sym_repr(value)})"'
    if node.type is not None or (isinstance(value, tuple) and hasattr(value, "_fields")):
        raise _Unusual  # Another type, or the description of a tensor.
    return ""


def _sizes(sizes: Any) -> str:
    return f"[{', '.join(map(str, sizes))}]"
