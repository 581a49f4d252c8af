"""A list, tuple, dict or set of another length."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import one_graph_each
from compilescope.rules.guards._subjects import called, inside, shown, wrapper_note

_UNEQUAL = re.compile(r"^len\((?P<container>.+)\) != (?P<length>\d+)$")
_ITERATOR = "___tuple_iterator_len("


def _container(miss: Miss) -> str:
    subject = miss.cause.subject
    match = _UNEQUAL.match(subject)
    if match:
        return match["container"]
    if subject.startswith(_ITERATOR):
        return subject.removeprefix(_ITERATOR).removesuffix(")")
    return inside(subject, "len")


def _applies(miss: Miss) -> bool:
    return _container(miss) != ""


def _modules(miss: Miss) -> bool:
    return _container(miss).endswith("._modules")


def _is_dict(miss: Miss) -> bool:
    # Torch tells a dict's length in words of its own, `len(d) != 1`.
    return miss.cause.kind.startswith("DICT") or _UNEQUAL.match(miss.cause.subject) is not None


def _why(miss: Miss) -> str:
    match = _UNEQUAL.match(miss.cause.subject)
    name = shown(_container(miss).removesuffix("._modules"))
    was = match["length"] if match else miss.cause.expected
    now = miss.cause.actual if miss.cause.actual.isdigit() else "another number"
    what = "layer" if _modules(miss) else "element"
    what += "" if was == "1" else "s"
    subject = {
        "kwargs": "the call's keyword arguments",
        "args": "the call's positional arguments",
    }.get(name, f"`{name}`")
    return (
        f"`{called(miss)}` was compiled with {was} {what} in {subject}; this call has {now}. The graph has an input, or a piece "
        f"of code, for each of them.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    container = _container(miss)
    name = shown(container)
    if _modules(miss):
        return one_graph_each(miss)
    if container in ("kwargs", "args"):
        return [
            source(
                f"Call `{called(miss)}` with the same arguments each time, those that vary as explicit defaults (a mask of ones rather than "
                "no mask)."
            ),
            judgement("Or leave it: one compilation for each set of arguments that occurs."),
        ]
    if _is_dict(miss):
        return [
            source(
                f"Pass a `{name}` with the same entries in every call, a neutral value where one is missing; or only the tensors that "
                f"`{called(miss)}` uses, as arguments of their own."
            ),
            judgement("Or leave it, if there are few sets of entries: one compilation for each."),
        ]
    return [
        source(
            f"If they are tensors of one shape, stack them before the call: `torch.stack({name})` is one input, and its first dimension may vary "
            f"(`torch._dynamo.mark_dynamic`). `dynamic=True` alone does not help: it is about sizes, not about lengths."
        ),
        source("Or always pass the same number of them, filled up with neutral ones."),
        judgement(
            f"A `{name}` that grows from call to call (a history, a cache) compiles each time until the limit: keep it in one tensor of fixed size."
        ),
    ]


RULE = GuardRule(
    id="length-change",
    order=350,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(xs):
    return torch.stack(xs).sum(0)

for length in (2, 3, 4):
    f([torch.ones(3) for _ in range(length)])
""",
            good="""import torch

@torch.compile(backend="eager")
def f(xs):
    return xs.sum(0)

for length in (2, 3, 4):
    xs = torch.stack([torch.ones(3) for _ in range(length)])
    torch._dynamo.mark_dynamic(xs, 0)
    f(xs)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(batch):
    return sum(batch.values())

f({"a": torch.ones(3)})
f({"a": torch.ones(3), "b": torch.ones(3)})
""",
            good="""import torch

@torch.compile(backend="eager")
def f(batch):
    return sum(batch.values())

f({"a": torch.ones(3), "b": torch.zeros(3)})
f({"a": torch.ones(3), "b": torch.ones(3)})
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, **kwargs):
    return x * len(kwargs)

f(torch.ones(3))
f(torch.ones(3), mask=torch.ones(3))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, **kwargs):
    return x * len(kwargs)

f(torch.ones(3), mask=torch.zeros(3))
f(torch.ones(3), mask=torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

class Net(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

for depth in (1, 2):
    torch.compile(Net(depth), backend="eager")(torch.ones(3))
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

for depth in (1, 2):
    torch.compile(Net(depth), backend="eager", isolate_recompiles=True)(torch.ones(3))
""",
        ),
    ),
)
