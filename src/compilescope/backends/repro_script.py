"""The text of a repro: the graph as a module, inputs by their shapes, and the same backend."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import torch

from compilescope.backends.constraint_code import configuration_code
from compilescope.backends.mock import Judged
from compilescope.backends.wording import place
from compilescope.torchapi.compile_modes import changed_settings
from compilescope.torchapi.graph_code import graph_code
from compilescope.version import VERSION

_MOST_NAMED = 10
_TENSOR = '''\
def tensor(shape, dtype, stride=None, device="cpu", grad=False, dynamic=()):
    """Random numbers; zeros where only whole numbers go, for those may be indices."""
    if stride is None:
        made = torch.empty(shape, device="meta")
        stride = made.stride()
    length = 1 + sum((size - 1) * step for size, step in zip(shape, stride))
    length = 0 if 0 in shape else length
    if dtype.is_floating_point or dtype.is_complex:
        whole = torch.randn(length, device=device).to(dtype)
    else:
        whole = torch.zeros(length, dtype=dtype, device=device)
    made = whole.as_strided(shape, stride).requires_grad_(grad)
    for dim in range(len(shape)):
        if dim in dynamic:
            torch._dynamo.maybe_mark_dynamic(made, dim)
        else:
            torch._dynamo.mark_static(made, dim)
    return made
'''

_APPLY = '''\
class Applied(torch.autograd.Function):
    """A function with a gradient of its own, whose two passes are graphs."""

    @staticmethod
    def forward(ctx, forward, backward, *args):
        results, ctx.kept = forward(*args)
        ctx.gradient = backward
        return results

    @staticmethod
    def backward(ctx, *gradients):
        return (None, None, *ctx.gradient(*gradients, *ctx.kept))


def apply_function(forward, backward, *args, **_):
    return Applied.apply(forward, backward, *args)
'''
_APPLIED = "torch.ops.higher_order.autograd_function_apply("
"""Dynamo writes it, and cannot read it (torch 2.13)."""


def repro_script(judged: Judged) -> str:
    """Unwritable where the graph or a constraint has no source of its own."""
    code = graph_code(judged.module)
    chosen = configuration_code(judged.configuration)
    imports = {**code.imports, **chosen.imports, "torch": "import torch"}
    classes = [text.replace(_APPLIED, "apply_function(") for text in code.classes]
    inputs = "".join(f"    {line},\n" for line in code.inputs)
    arguments = "".join(
        f"    {word},\n" for word in [*chosen.arguments, "strict=True", "repro=False"]
    )
    parts = [
        _docstring(judged),
        "from __future__ import annotations",
        "\n".join(_paths(chosen.folders)),
        "\n".join([*sorted({line for line in imports.values() if line}), "import compilescope"]),
        *chosen.definitions,
        "\n".join(changed_settings()),
        _TENSOR,
        _APPLY if classes != code.classes else "",
        *classes,
        f"inputs = [\n{inputs}]" if inputs else "inputs = []",
        f"backend = compilescope.{judged.backend}(\n{arguments})",
        _main(judged.contexts, code.dynamic),
    ]
    return "\n\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def _docstring(judged: Judged) -> str:
    found = [each for graph in judged.checked for each in graph.errors]
    first = judged.checked[0]
    model = f" of {first.model}" if first.model else ""
    lines = [f"{first.device} does not take this graph{model}.", ""]
    for each in found[:_MOST_NAMED]:
        said = f"- {place(each)}: {each.rule}, {each.op}: {each.found}; allowed: {each.allowed}"
        lines += textwrap.wrap(said, 90, subsequent_indent="  ", break_long_words=False)
    if len(found) > _MOST_NAMED:
        lines.append(f"- and {len(found) - _MOST_NAMED} more")
    lines += ["", f"Written by compilescope {VERSION} with torch {torch.__version__}, and run in a"]
    lines += ["fresh process, where the same violations came again. Weights are random."]
    text = "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}\n"""'


def _paths(folders: list[str]) -> list[str]:
    if not folders:
        return []
    return ["import sys", "", *(f"sys.path.insert(0, {folder!r})" for folder in folders)]


def _main(contexts: Sequence[str], dynamic: bool) -> str:
    """In the modes in which the program compiled it."""
    how = ", dynamic=True" if dynamic else ""
    call = f"torch.compile(Graph(), backend=backend, fullgraph=True{how})(*inputs)"
    lines = ['if __name__ == "__main__":']
    indent = "    "
    if contexts:
        lines.append(f"    with {', '.join(contexts)}:")
        indent += "    "
    return "\n".join([*lines, indent + call])
