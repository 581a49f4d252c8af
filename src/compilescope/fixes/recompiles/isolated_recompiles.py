"""Each compiled object keeps its own compilations, and its own share of the recompile limit."""

from __future__ import annotations

import re

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.compiling import set_argument
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.guarded import cause_of
from compilescope.fixes.source.regions import region_of
from compilescope.fixes.subject import Subject

_STATES = "Each compiled object has its own graphs: as many as before, not fewer."


_CHANGED_LENGTH = re.compile(r"len\((.+)\)$")
_PASSED = ("kwargs[", "args[")
_CHANGING = ("append", "extend", "insert", "pop", "popleft", "appendleft", "remove", "clear", "add")


def _changes_itself(subject: Subject, name: str) -> bool:
    """Does the compiled function add to what it looks at? Then one object alone recompiles."""
    frame = subject.frame
    lines = subject.module.text.splitlines()[frame.line - 1 :] if frame is not None else []
    return any(f"{name}.{method}(" in line for line in lines for method in _CHANGING)


def _propose(subject: Subject) -> Patch:
    grown = _CHANGED_LENGTH.match(cause_of(subject).subject)
    if "___stack" in cause_of(subject).subject:
        raise NotMeant("it follows from an earlier graph break")
    if cause_of(subject).subject.removeprefix("type(").startswith(_PASSED):
        raise NotMeant("the caller passes both to one object, which needs both graphs")
    region = region_of(subject)
    if grown is not None and _changes_itself(subject, grown[1]):
        raise Refused(f"the function itself changes the length of `{grown[1]}` in every call")
    if not region.is_repeated:
        raise NotMeant("torch.compile is applied once, so there is nothing to isolate")
    if region.argument("isolate_recompiles") is not None:
        raise NotMeant("isolate_recompiles is already set")
    edit = Edit(region.module)
    set_argument(edit, region, "isolate_recompiles", "True")
    return Patch(edit.files(), states=_STATES)


FIX = Fix(
    id="isolated-recompiles",
    title="give each object its own compilations",
    rules=frozenset(
        f"recompile/{rule}"
        for rule in (
            "layer-index",
            "module-number",
            "module-flag",
            "module-class",
            "parameter-size",
            "closure-change",
            "function-change",
            "length-change",
            "none-or-value",
            "attribute-presence",
            "requires-grad-change",
        )
    ),
    order=190,
    kind="config",
    why="All objects of a class share the code of its functions, and so its cache. With "
    "`isolate_recompiles=True` (torch 2.13), each application of torch.compile has its own "
    "cache: none recompiles because of another or uses up its limit.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


class Layer(torch.nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, x, cache):
        return x + cache[self.layer_idx]


cache = [torch.ones(3) for _ in range(3)]
layers = [torch.compile(Layer(n), backend="eager") for n in range(3)]
for layer in layers:
    layer(torch.ones(3), cache)
""",
            good="""import torch


class Layer(torch.nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, x, cache):
        return x + cache[self.layer_idx]


cache = [torch.ones(3) for _ in range(3)]
layers = [torch.compile(Layer(n), backend="eager", isolate_recompiles=True) for n in range(3)]
for layer in layers:
    layer(torch.ones(3), cache)
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.double = True

    def forward(self, x):
        return x * 2 if self.double else x


net = Net()
compiled = torch.compile(net, backend="eager")
compiled(torch.ones(3))
net.double = False
compiled(torch.ones(3))
""",
            because="applied once",
        ),
    ),
)
