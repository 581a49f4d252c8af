"""Writes the repro script of a graph: what it shows, the graph, its inputs, and its verdict.

The script needs torch alone, and compilescope only where what it shows is one of its checks.

Pure text: nothing here needs torch.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from compilescope.base.texts import in_docstring, one_line
from compilescope.base.version import VERSION
from compilescope.change.minify.graph.record import Setting, Shown
from compilescope.change.minify.script.conclusion import ENDING_IMPORTS, ending_source, exits
from compilescope.change.minify.script.embedded import (
    autograd_function,
    code_of,
    differences,
    failures,
    graph_run,
    imports_of,
    tensors,
)
from compilescope.change.minify.script.embedded import signals as crashes
from compilescope.change.minify.script.embedded import violations as refusals
from compilescope.record.written_graph import (
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

_BY_KIND = {
    "violation": refusals,
    "failure": failures,
    "signal": crashes,
    "difference": differences,
}
_PLAIN_IMPORTS = ("import torch", "import sys")
"""Every script has them."""
_WORD = re.compile(r"\w+")


def script_text(
    graph: WrittenGraph,
    setting: Setting,
    shown: Shown,
    *,
    torch_version: str,
    saved: Mapping[str, str] | None = None,
    saved_file: str = "",
    variables: Mapping[str, str] | None = None,
) -> str:
    """`variables`: of the environment, which torch reads while it is imported. `saved`:
    expressions for the numbers of inputs that are written into the script; others come from
    `saved_file`, beside the script."""
    words = saved or {}
    given = [each for each in graph.inputs if not each.attribute]
    lines = [f"        {input_source(each, words.get(each.saved, ''))}," for each in given]
    made = "\n".join(["    return [", *lines, "    ]"]) if lines else "    return []"
    classes = graph_classes(graph)
    backend = setting.backend
    parts = [
        _docstring(shown, torch_version),
        _head(graph, setting, shown, saved_file, variables or {}),
        *(each for each in backend.definitions if each not in _PLAIN_IMPORTS),
        "\n".join([*setting.settings, *_random_settings(setting, shown)]),
        *classes,
        f"def inputs():\n{made}",
        *_runs(_backward(graph, setting), setting, shown),
        _main(shown),
        "# Support code for the script; the bug itself is above.",
        *_embedded(graph, shown, saved_file),
        _saved(saved_file),
        ending_source(),
        'if __name__ == "__main__":\n    conclude_from(main)',
    ]
    return "\n\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def _docstring(shown: Shown, torch_version: str) -> str:
    lines = textwrap.wrap(shown.title, 95)
    if shown.lines:
        lines += [""]
        for line in shown.lines:
            lines += textwrap.wrap(line, 95, subsequent_indent="  ", break_long_words=False)
    lines += [
        "",
        f"Written by compilescope {VERSION} on torch {torch_version} and verified in a fresh",
    ]
    lines += ["process. Run it with: python THIS_FILE", exits()]
    text = in_docstring("\n".join(lines))
    return f'"""{text}\n"""'


def _head(
    graph: WrittenGraph,
    setting: Setting,
    shown: Shown,
    saved_file: str,
    variables: Mapping[str, str],
) -> str:
    """Folders go onto the path before anything is imported from them."""
    words = set(_WORD.findall("".join(graph_classes(graph, notes=False))))
    needed = (line for name, line in graph.imports.items() if name in words)
    imports = {*ENDING_IMPORTS, "import torch", *needed, *setting.backend.imports}
    for module in _modules(graph, shown):
        imports |= imports_of(module)
    if saved_file:
        imports |= {"import json", "import os"}
    lines = sorted(line for line in imports if line)
    folders = dict.fromkeys((*graph.folders, *setting.backend.folders))
    first = [f"os.environ[{name!r}] = {value!r}" for name, value in variables.items()]
    if first:
        first = ["import os", "", *first, ""]
    if folders:
        paths = [f"sys.path.insert(0, {folder!r})" for folder in folders]
        first += ["import sys", "", *paths, ""]
    return "\n".join([*first, *lines])


def _random_settings(setting: Setting, shown: Shown) -> list[str]:
    """Inductor draws random numbers of its own; for a comparison it must draw eager's."""
    if shown.kind != "difference" or setting.backend.expression != "'inductor'":
        return []
    return ["import torch._inductor.config", "torch._inductor.config.fallback_random = True"]


def _modules(graph: WrittenGraph, shown: Shown) -> list[ModuleType]:
    """The files that go into it whole."""
    found: list[ModuleType] = [graph_run, _BY_KIND[shown.kind]]
    if calls_apply(graph):
        found.append(autograd_function)
    return found


def _embedded(graph: WrittenGraph, shown: Shown, saved_file: str) -> Iterator[str]:
    fills = {each.fill for each in graph.inputs if each.tensor is not None}
    if fills:
        yield inspect.getsource(tensors.tensor)
    if "saved" in fills:
        yield inspect.getsource(tensors.laid_out)
    if saved_file:
        yield inspect.getsource(tensors.read_tensors)
    for module in _modules(graph, shown):
        yield code_of(module)


def _saved(saved_file: str) -> str:
    if not saved_file:
        return ""
    return (
        "saved = read_tensors(os.path.join(os.path.dirname(os.path.abspath(__file__)), "
        f"{saved_file!r}))"
    )


def _backward(graph: WrittenGraph, setting: Setting) -> bool:
    """Without an input that wants a gradient there is none."""
    asked = any(each.tensor is not None and each.tensor.grad for each in graph.inputs)
    return asked and setting.backward


def _runs(backward: bool, setting: Setting, shown: Shown) -> list[str]:
    """`run`, and what is run."""
    body = f"return results_of(function, numbers, backward={backward})"
    run = ["def run(function, numbers):"]
    if setting.contexts:
        run += [f"    with {', '.join(setting.contexts)}:", f"        {body}"]
    else:
        run += [f"    {body}"]
    words = ["Graph()", f"backend={setting.backend.expression}", "fullgraph=True"]
    compiled = [
        "def compiled():",
        f"    function = torch.compile({', '.join([*words, *setting.options])})",
        "    return run(function, inputs())[0]",
    ]
    parts = ["\n".join(run)]
    if shown.kind != "violation":
        parts.append("def eager():\n    return run(Graph(), inputs())[0]")
    parts.append("\n".join(compiled))
    if shown.kind == "difference":
        parts.append("def exact():\n    return in_double(Graph(), run, inputs())")
    return parts


def _main(shown: Shown) -> str:
    call = {
        "violation": "find_violations(EXPECTED, compiled, compilescope.ConstraintError)",
        "failure": "find_failure(EXPECTED, eager, compiled)",
        "signal": "find_signal(EXPECTED, eager, compiled)",
        "difference": "find_difference(EXPECTED, eager, compiled, exact)",
    }[shown.kind]
    return f"EXPECTED = {_expected(shown)}\n\n\ndef main():\n    return {call}"


def _expected(shown: Shown) -> str:
    if shown.kind == "violation":
        pairs = sorted({(fact[0], fact[2]) for fact in shown.expected})
        return "{" + ", ".join(map(repr, pairs)) + "}"
    if shown.kind == "failure":
        return repr(tuple(shown.expected))
    return repr(shown.expected)


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


def graph_classes(
    graph: WrittenGraph,
    name: str = "Graph",
    notes: bool = True,
    made: Callable[[Input], str] | None = None,
) -> list[str]:
    """Inner graphs first; with the user's lines as comments where `notes` asks for them. `made`
    writes a tensor that the graph holds."""
    inner: list[str] = []
    setup: list[str] = []
    for each in graph.inputs:
        if each.attribute:
            setup.append(f"self.{each.name} = {(made or input_source)(each)}")
    for held, source in graph.modules.items():
        setup.append(f"self.{held} = {source}")
    for held, within in graph.graphs.items():
        inner += graph_classes(within, f"{name}_{held}", notes, made)
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
    yield f"return {_arg_source(graph.output, held)}"


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
    return ", ".join(_arg_source(arg, held) for arg in (device, *given))


def _statement(op: Op, held: Mapping[str, str]) -> str:
    if op.target == "operator.setitem" and len(op.args) == 3:
        # Dynamo does not trace the function (torch 2.13).
        tensor, value = _arg_source(op.args[0], held), _arg_source(op.args[2], held)
        return f"{tensor}[{_index_source(op.args[1], held)}] = {value}"
    return f"{op.name} = {_call_source(op, held)}"


def _call_source(op: Op, held: Mapping[str, str]) -> str:
    args = [_arg_source(arg, held) for arg in op.args]
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
    words = args + [f"{name}={_arg_source(arg, held)}" for name, arg in op.kwargs.items()]
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
            "" if part is None else _arg_source(part, held)
            for part in (arg.start, arg.stop, arg.step)
        )
        return f"{start}:{stop}" + (f":{step}" if step else "")
    return _arg_source(arg, held)


def calls_apply(graph: WrittenGraph) -> bool:
    """Does it, or a graph in it, need what stands in for torch's own?"""
    return any(op.target == _APPLY for op in graph.ops) or any(
        calls_apply(inner) for inner in graph.graphs.values()
    )


def _arg_source(arg: Arg, held: Mapping[str, str]) -> str:
    if isinstance(arg, Ref):
        return held.get(arg.name, arg.name)
    if isinstance(arg, Code):
        return arg.text
    if isinstance(arg, Items):
        items = [_arg_source(item, held) for item in arg.items]
        if arg.kind == "list":
            return f"[{', '.join(items)}]"
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(arg, WrittenDict):
        pairs = (f"{_arg_source(k, held)}: {_arg_source(v, held)}" for k, v in arg.pairs)
        return f"{{{', '.join(pairs)}}}"
    if isinstance(arg, Slice):
        parts = (_arg_source(part, held) for part in (arg.start, arg.stop, arg.step))
        return f"slice({', '.join(parts)})"
    return repr(arg)


def input_source(given: Input, saved: str = "") -> str:
    """The call that makes it; `saved` is the expression for its numbers, where they are kept."""
    kind = given.tensor
    if kind is None:
        return _arg_source(given.value, {})
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
