"""Writes the repro script of a graph: what it shows, the graph, its inputs, and its verdict.

The script needs torch alone, and compilescope only where what it shows is one of its checks.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType

from compilescope.minify.script.conclusion import ENDING_IMPORTS, ending_source, exits
from compilescope.minify.script.embedded import (
    autograd_function,
    code_of,
    differences,
    failures,
    graph_run,
    imports_of,
    tensors,
)
from compilescope.minify.script.embedded import signals as crashes
from compilescope.minify.script.embedded import violations as refusals
from compilescope.minify.script.graph_source import (
    calls_apply,
    graph_classes,
    input_source,
)
from compilescope.minify.script.spec import Setting, Shown
from compilescope.model.written_graph import WrittenGraph
from compilescope.texts import in_docstring
from compilescope.version import VERSION

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
) -> str:
    """`saved`: expressions for the numbers of inputs that are written into the script; others come
    from `saved_file`, beside the script."""
    words = saved or {}
    given = [each for each in graph.inputs if not each.attribute]
    lines = [f"        {input_source(each, words.get(each.saved, ''))}," for each in given]
    made = "\n".join(["    return [", *lines, "    ]"]) if lines else "    return []"
    classes = graph_classes(graph)
    backend = setting.backend
    parts = [
        _docstring(shown, torch_version),
        _head(graph, setting, shown, saved_file),
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


def _head(graph: WrittenGraph, setting: Setting, shown: Shown, saved_file: str) -> str:
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
    if not folders:
        return "\n".join(lines)
    paths = [f"sys.path.insert(0, {folder!r})" for folder in folders]
    return "\n".join(["import sys", "", *paths, "", *lines])


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
