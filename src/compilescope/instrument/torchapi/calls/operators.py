"""What the installed torch knows of its operators: names, schemas, decompositions; which nodes of a
graph may not move to a device, and which must keep their order.

Operators are named as the portable graph names them: `aten.add_.Tensor`. None is an honest answer:
this process has not loaded the operator. `OperatorWatch` notes, while it is on, which operators run
on which devices.

Edges of a graph say only who needs whose result. They do not say that one random number is drawn
before another, or that a tensor is read before it is written in place: that is found here. Where
the operators behind a node are unknown, the node is taken to write.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from compilescope.knowledge.rules.hardware.op_names import canonical
from compilescope.record.graph import Call, Graph, Node


@functools.lru_cache(maxsize=4096)
def find_overload(op: str) -> Any | None:
    """torch's own object; None for what this process has not loaded, or is no overload."""
    parts = op.split(".")
    if len(parts) != 3:
        return None
    found: Any = torch.ops
    for part in parts:
        found = getattr(found, part, None)
        if found is None:
            return None
    return found if isinstance(found, torch._ops.OpOverload) else None


def is_higher_order(target: Any) -> bool:
    """An operator over operators, such as `cond`."""
    return isinstance(target, torch._ops.HigherOrderOperator)


def is_random(call: Call) -> bool | None:
    """Does it draw random numbers, called like this? None where the operator is not known."""
    overload = find_overload(call.op)
    if overload is None:
        return None
    if torch.Tag.nondeterministic_seeded not in overload.tags:
        return False
    given = call.constants
    if any(given.get(name) is False for name in ("train", "training")):
        return False
    chances = ["dropout_p", "dropout"]
    chances += ["p"] if "dropout" in call.op else []
    return not any(name in given and given[name] == 0 for name in chances)


def writes(op: str) -> bool | None:
    """Does it change what it is given?"""
    overload = find_overload(op)
    return None if overload is None else bool(overload._schema.is_mutable)


def written_arguments(overload: Any) -> list[int]:
    """The positions of the arguments that it changes."""
    return [
        number
        for number, argument in enumerate(overload._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def is_view(op: str) -> bool:
    """Does it give another look at memory that is there already?"""
    overload = find_overload(op)
    if overload is None:
        return False
    results = [result.alias_info for result in overload._schema.returns]
    return bool(results) and all(info is not None and not info.is_write for info in results)


@functools.lru_cache(maxsize=1)
def known_operators() -> frozenset[str]:
    """`aten.add.Tensor`, `aten.relu.default`, of every library that is loaded."""
    names = getattr(torch._C, "_dispatch_get_all_op_names", None)
    if names is None:
        return frozenset()
    return frozenset(_dotted(name) for name in names())


def _dotted(name: str) -> str:
    library, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    return f"{library}.{base}.{overload or 'default'}"


def is_torch_name(name: str) -> bool:
    """Does Python find it: `torch.nn.functional.grid_sample`, a method such as `view`?"""
    if "." not in name:
        return hasattr(torch.Tensor, name)
    found: Any = torch
    first, *parts = name.split(".")
    for part in parts:
        found = getattr(found, part, None)
    return first == "torch" and bool(parts) and found is not None


def is_composite(op: str) -> bool:
    """Is it, with all its overloads, made of other operators? Then no ATen graph ever holds it."""
    asks = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", None)
    if asks is None:
        return False
    library, name, *overload = canonical(op).split(".", 2)
    known = [each for each in _overloads(library, name) if not each.endswith("out")]
    family = [f"{library}.{name}.{each}" for each in known if not overload or each in overload]
    return bool(family) and all(
        asks(_coloned(known), "CompositeImplicitAutograd") for known in family
    )


def _overloads(library: str, name: str) -> list[str]:
    packet: Any = getattr(getattr(torch.ops, library, None), name, None)
    return [] if packet is None else packet.overloads()


def _coloned(op: str) -> str:
    library, base, overload = op.split(".", 2)
    return f"{library}::{base}" + (f".{overload}" if overload != "default" else "")


def argument_names(op: str) -> frozenset[str]:
    """Of all overloads of an operator `aten.convolution`."""
    library, name, *_ = (*canonical(op).split("."), "")
    packet: Any = getattr(getattr(torch.ops, library, None), name, None)
    if packet is None:
        return frozenset()
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    return frozenset(a.name for overload in overloads for a in overload._schema.arguments)


def decompositions_for(names: Iterable[str]) -> dict[Any, Callable[..., Any]]:
    """torch's core ATen set, and those of these operators of `aten` that this torch can take
    apart."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    known = [getattr(torch.ops.aten, name) for name in names if hasattr(torch.ops.aten, name)]
    return {**core_aten_decompositions(), **get_decompositions(known)}


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Attention is traced as matrix products and a softmax, not as one fused operator whose
    backward nobody can take apart."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        yield
        return
    with sdpa_kernel(SDPBackend.MATH):
        yield


class OperatorWatch(TorchDispatchMode):  # type: ignore[misc]
    """Counts the operators that run on these kinds of devices while it is on."""

    def __init__(self, devices: frozenset[str]) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self._devices = devices

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        kinds = {
            leaf.device.type
            for leaf in tree_leaves((args, kwargs, result))
            if isinstance(leaf, torch.Tensor)
        }
        if kinds and kinds <= self._devices:
            self.seen[str(func)] += 1
        return result


def is_compiled(function: Any) -> bool:
    """Was it made by torch.compile? Dynamo runs nothing compiled while operators are watched."""
    return any(
        hasattr(function, mark)
        for mark in ("_torchdynamo_orig_callable", "_orig_mod", "get_compiler_config")
    )


_WRITING_SYMBOLS = ("setitem", "delitem")
RANDOM = "randomness"
_WRITES = "writes"
_EFFECT = "side-effect"
_SUBGRAPHS = "subgraphs"
_WHOLE = "whole-module"
_STRUCTURE = "structure"
_ALIAS = "alias"
_REGION = "region"
_ORDERED = (RANDOM, _WRITES, _EFFECT)


class NodeEffect(NamedTuple):
    """Why a node stays where it is."""

    rule: str
    words: str


_UNKNOWN = NodeEffect(_WRITES, "its operators are unknown: it may modify its inputs")


class Effects(NamedTuple):
    """Of a graph."""

    kept: dict[str, NodeEffect]
    ordered: list[str]
    """Nodes that must run in this order, whoever needs whom."""


def find_effects(module: GraphModule, graph: Graph, *, random_is_free: bool) -> Effects:
    """`graph` is the module's portable graph, with its calls. `random_is_free`: the caller does
    not ask for the numbers that the host's generator would have given."""
    nodes = {node.name: node for node in graph.nodes}
    kept: dict[str, NodeEffect] = {}
    written: dict[int | None, str] = {}
    for live in module.graph.nodes:
        if not live.op.startswith("call_"):
            continue
        node = nodes[live.name]
        effect = _own_effect(live, node, random_is_free)
        if effect is None:
            continue
        kept[live.name] = effect
        if effect.rule == _WRITES:
            for other in _written(live):
                for tensor in nodes[other.name].outputs:
                    written.setdefault(tensor.storage, live.name)
    if written:
        _keep_what_touches(graph, nodes, written, kept)
    region = next((e for e in kept.values() if e.rule == _REGION), None)
    if region is not None:
        # It concerns all that runs within it: nothing may go in or out.
        every = [node.name for node in graph.nodes if node.op.startswith("call_")]
        return Effects({name: kept.get(name, region) for name in every}, every)
    ordered = [name for name in nodes if name in kept and kept[name].rule in _ORDERED]
    return Effects(kept, ordered)


def find_input_views(graph: Graph) -> dict[str, NodeEffect]:
    """Nodes that look at an input's memory. Whoever compiled the graph may count on that: a copy
    from another device would not do. AOTAutograd makes such views itself, Dynamo does not."""
    inputs = {
        tensor.storage
        for node in graph.nodes
        if node.op in ("placeholder", "get_attr")
        for tensor in node.outputs
        if tensor.storage is not None
    }
    words = "a view of an input: it must share the input's memory"
    return {
        node.name: NodeEffect(_ALIAS, words)
        for node in graph.nodes
        if node.op.startswith("call_") and any(t.storage in inputs for t in node.outputs)
    }


def _own_effect(live: FxNode, node: Node, random_is_free: bool) -> NodeEffect | None:
    if live.op == "call_module":
        return NodeEffect(_WHOLE, "a module that the compiler did not inline")
    if isinstance(live.target, torch._ops.HigherOrderOperator):
        return NodeEffect(_SUBGRAPHS, "a higher-order operator: it runs graphs of its own")
    calls = node.calls
    if calls is None:
        # Known to torch as a plain number's function, or nobody can tell what it does.
        return None if node.no_tensor and _is_plain(live) else _UNKNOWN
    if not calls and not node.outputs and not _is_plain(live):
        return NodeEffect(_REGION, f"a region such as autocast begins or ends here ({node.target})")
    if any(_is_writer(call) for call in calls):
        return NodeEffect(_WRITES, "it changes a tensor in place")
    if not random_is_free and any(is_random(call) for call in calls):
        return NodeEffect(RANDOM, "it draws from the host's random number generator")
    if not live.users:
        return NodeEffect(_EFFECT, "its result is unused: it runs for its side effects")
    if _is_whole_structure(live):
        return NodeEffect(_STRUCTURE, "it returns several values that are passed on as one")
    return None


def _is_writer(call: Call) -> bool:
    # An operator of a library that is not loaded here may do anything.
    return find_overload(call.op) is None or bool(writes(call.op))


def _is_plain(live: FxNode) -> bool:
    home = getattr(live.target, "__module__", "") or ""
    if isinstance(live.target, torch._ops.OpOverload):
        return True
    if home not in ("_operator", "math", "builtins", "torch"):
        return bool(live.op == "call_method")
    return not _looks_writing(live)


def _looks_writing(live: FxNode) -> bool:
    return getattr(live.target, "__name__", "") in _WRITING_SYMBOLS


def _is_whole_structure(live: FxNode) -> bool:
    value = live.meta.get("val", live.meta.get("example_value"))
    if not isinstance(value, (tuple, list, dict)):
        return False
    return any(user.target is not operator.getitem for user in live.users)


def _written(live: FxNode) -> list[FxNode]:
    """The nodes whose memory it may change."""
    if isinstance(live.target, torch._ops.OpOverload):
        names = [argument.name for argument in live.target._schema.arguments]
        given: list[Any] = []
        for number in written_arguments(live.target):
            positional = live.args[number] if number < len(live.args) else None
            given.append(live.kwargs.get(names[number], positional))
        return _nodes_in(given)
    name = live.target if isinstance(live.target, str) else getattr(live.target, "__name__", "")
    own = str(name)
    in_place = own.endswith("_") and not own.endswith("__")
    if (in_place or own in _WRITING_SYMBOLS or own in _IN_PLACE_SYMBOLS) and live.args:
        return _nodes_in([live.args[0], live.kwargs.get("out")])
    return list(live.all_input_nodes)


_IN_PLACE_SYMBOLS = frozenset(name for name in dir(operator) if name.startswith("i")) - {
    "index", "indexOf", "inv", "invert", "is_", "is_not", "itemgetter", "is_none", "is_not_none",
}  # fmt: skip


def _nodes_in(given: list[Any]) -> list[FxNode]:
    found: list[FxNode] = []
    torch.fx.node.map_arg(given, lambda node: found.append(node))
    return found


def _keep_what_touches(
    graph: Graph,
    nodes: dict[str, Node],
    written: dict[int | None, str],
    kept: dict[str, NodeEffect],
) -> None:
    """Whoever reads or looks at memory that is written somewhere stays in line with the writer.

    A storage that is not known (None) may be any other.
    """
    for node in graph.nodes:
        if not node.op.startswith("call_") or node.name in kept:
            continue
        around = [*node.outputs, *(t for name in node.inputs for t in nodes[name].outputs)]
        if None in written and around:
            writers = {written[None]}
        else:
            writers = {written[t.storage] for t in around if t.storage in written}
        if writers:
            words = f"it shares memory with what {sorted(writers)[0]} modifies"
            kept[node.name] = NodeEffect(_WRITES, words)
