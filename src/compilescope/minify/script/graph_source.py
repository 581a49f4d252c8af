"""A written graph as Python: a class for it, one for each graph in it, and its inputs.

Pure text: nothing here needs torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from compilescope.model.written_graph import (
    Arg,
    Code,
    Input,
    Items,
    Op,
    Ref,
    Slice,
    TensorKind,
    WrittenDict,
    WrittenGraph,
    names_in,
    names_used,
)
from compilescope.texts import one_line

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
_APPLY = "torch.ops.higher_order.autograd_function_apply"
APPLY = "apply_function"
"""What a script calls in its place."""
_ENTER = "torch.amp.autocast_mode._enter_autocast"
_EXIT = "torch.amp.autocast_mode._exit_autocast"
_AUTOCAST_DEFAULTS = (None, True, None)
"""Of `torch.autocast` after the device: dtype, enabled, cache_enabled."""


def graph_classes(graph: WrittenGraph, name: str = "Graph", notes: bool = True) -> list[str]:
    """Inner graphs first; with the user's lines as comments where `notes` asks for them."""
    inner: list[str] = []
    setup: list[str] = []
    for each in graph.inputs:
        if each.attribute:
            setup.append(f"self.{each.name} = {input_source(each)}")
    for held, source in graph.modules.items():
        setup.append(f"self.{held} = {source}")
    for held, within in graph.graphs.items():
        inner += graph_classes(within, f"{name}_{held}", notes)
        setup.append(f"self.{held} = {name}_{held}()")
    lines = [f"class {name}(torch.nn.Module):"]
    if setup:
        lines += ["    def __init__(self):", "        super().__init__()"]
        lines += [f"        {line}" for line in setup] + [""]
    parameters = ["self", *(each.name for each in graph.inputs if not each.attribute)]
    lines.append(f"    def forward({', '.join(parameters)}):")
    lines += [f"        {line}" for line in _body(graph, notes)]
    return [*inner, "\n".join(lines)]


def _body(graph: WrittenGraph, notes: bool) -> Iterator[str]:
    held = {each.name: f"self.{each.name}" for each in graph.inputs if each.attribute}
    held |= {name: f"self.{name}" for name in graph.graphs}
    exits = _autocast_exits(graph)
    ends = set(exits.values())
    said, indent, begun = "", "", False
    for op in graph.ops:
        if op.name in ends:
            if begun:
                yield f"{indent}pass"
            indent, begun = indent[4:], False
            continue
        if notes and op.note and op.note != said:
            said = op.note
            yield f"{indent}# {_one_line(op.note)}"
        if op.name in exits:
            yield f"{indent}with torch.autocast({_autocast_words(op, held)}):"
            indent, begun = indent + "    ", True
        else:
            yield indent + _statement(op, held)
            begun = False
    yield f"return {arg_source(graph.output, held)}"


def _autocast_exits(graph: WrittenGraph) -> dict[str, str]:
    """The operations that begin an autocast region, each with the one that ends it, where `with`
    says the same. Dynamo does not trace the two functions themselves in torch 2.11."""
    uses = Counter(name for op in graph.ops for name in names_used(op))
    uses.update(names_in(graph.output))
    found: dict[str, str] = {}
    begun: list[str] = []
    for op in graph.ops:
        if op.target == _ENTER and not op.kwargs and uses[op.name] == 1:
            begun.append(op.name)
        elif op.target == _EXIT and not uses[op.name]:
            entered = next(names_used(op), "")
            if entered in begun:
                # What began later and is still open does not end in here: `with` can't say that.
                del begun[begun.index(entered) :]
                found[entered] = op.name
    return found


def _autocast_words(op: Op, held: Mapping[str, str]) -> str:
    device, *given = op.args
    while given and given[-1] is _AUTOCAST_DEFAULTS[len(given) - 1]:
        given.pop()
    return ", ".join(arg_source(arg, held) for arg in (device, *given))


def _statement(op: Op, held: Mapping[str, str]) -> str:
    if op.target == "operator.setitem" and len(op.args) == 3:
        # Dynamo does not trace the function (torch 2.13).
        tensor, value = arg_source(op.args[0], held), arg_source(op.args[2], held)
        return f"{tensor}[{_index_source(op.args[1], held)}] = {value}"
    return f"{op.name} = {call_source(op, held)}"


def call_source(op: Op, held: Mapping[str, str]) -> str:
    args = [arg_source(arg, held) for arg in op.args]
    if op.kind == "size":
        return f"{args[0]}.shape[{args[1]}]"
    if op.kind == "function" and op.target.startswith("operator.") and not op.kwargs:
        name = op.target.removeprefix("operator.")
        if name in _INFIX and len(args) == 2:
            return f"{args[0]} {_INFIX[name]} {args[1]}"
        if name == "getitem" and len(args) == 2:
            return f"{args[0]}[{_index_source(op.args[1], held)}]"
        if name == "neg" and len(args) == 1:
            return f"-{args[0]}"
    words = args + [f"{name}={arg_source(arg, held)}" for name, arg in op.kwargs.items()]
    if op.kind == "method" and words:
        return f"{words[0]}.{op.target}({', '.join(words[1:])})"
    target = f"self.{op.target}" if op.kind == "module" else op.target
    return f"{APPLY if target == _APPLY else target}({', '.join(words)})"


def _index_source(arg: Arg, held: Mapping[str, str]) -> str:
    if isinstance(arg, Items) and arg.kind == "tuple" and arg.items:
        parts = [_index_source(item, held) for item in arg.items]
        return ", ".join(parts) + ("," if len(parts) == 1 else "")
    if isinstance(arg, Slice):
        start, stop, step = (
            "" if part is None else arg_source(part, held)
            for part in (arg.start, arg.stop, arg.step)
        )
        return f"{start}:{stop}" + (f":{step}" if step else "")
    return arg_source(arg, held)


def calls_apply(graph: WrittenGraph) -> bool:
    """Does it, or a graph in it, need what stands in for torch's own?"""
    return any(op.target == _APPLY for op in graph.ops) or any(
        calls_apply(inner) for inner in graph.graphs.values()
    )


def arg_source(arg: Arg, held: Mapping[str, str]) -> str:
    if isinstance(arg, Ref):
        return held.get(arg.name, arg.name)
    if isinstance(arg, Code):
        return arg.text
    if isinstance(arg, Items):
        items = [arg_source(item, held) for item in arg.items]
        if arg.kind == "list":
            return f"[{', '.join(items)}]"
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(arg, WrittenDict):
        pairs = (f"{arg_source(k, held)}: {arg_source(v, held)}" for k, v in arg.pairs)
        return f"{{{', '.join(pairs)}}}"
    if isinstance(arg, Slice):
        parts = (arg_source(part, held) for part in (arg.start, arg.stop, arg.step))
        return f"slice({', '.join(parts)})"
    return repr(arg)


def input_source(given: Input, saved: str = "") -> str:
    """The call that makes it; `saved` is the expression for its numbers, where they are kept."""
    kind = given.tensor
    if kind is None:
        return arg_source(given.value, {})
    words = [repr(kind.shape), f"torch.{kind.dtype}", *_layout(kind)]
    if given.fill == "saved":
        words.append(f"saved={saved or f'saved[{given.saved!r}]'}")
    elif given.fill != "random":
        words.append(f"fill={1 if given.fill == 'ones' else 0}")
    else:
        if given.low or given.high:
            words += [f"low={given.low}", f"high={given.high}"]
        if given.seed:
            words.append(f"seed={given.seed}")
    return f"tensor({', '.join(words)})"


def _layout(kind: TensorKind) -> Iterator[str]:
    if kind.stride is not None:
        yield f"stride={kind.stride!r}"
    if kind.device != "cpu":
        yield f"device={kind.device!r}"
    if kind.grad:
        yield "grad=True"
    if kind.dynamic:
        yield f"dynamic={kind.dynamic!r}"


def _one_line(text: str) -> str:
    """A program's words in a comment stay in the comment."""
    kept = one_line(text)
    return kept if len(kept) <= 90 else kept[:87] + "..."
