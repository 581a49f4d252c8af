"""The first call runs eagerly: what it only prepares is there when the second one is compiled."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch
from compilescope.fixes.source.guarded import cause_of
from compilescope.fixes.source.stance import eager_then_compile
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if cause.count > 1:
        raise NotMeant("the guard failed more than once, so not only the first call is different")
    if "." not in cause.subject and not cause.subject.startswith("G["):
        # A caller that passes two kinds of things needs both; nothing is prepared by the first.
        raise NotMeant(f"`{cause.subject}` is passed by the caller, and not made by the first call")
    return eager_then_compile(subject)


FIX = Fix(
    id="first-call-eager",
    title="run the first call eagerly",
    rules=frozenset(
        f"recompile/{rule}"
        for rule in (
            "none-or-value",
            "attribute-presence",
            "bool-change",
            "module-flag",
            "module-number",
            "length-change",
            "key-change",
            "type-change",
            "global-change",
            "object-identity",
            "other-change",
        )
    ),
    order=130,
    kind="caller",
    why="With the stance `eager_then_compile` each function is compiled at its second call. A cache "
    "that the first one fills, or an attribute that it adds, is then there.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = None

    def forward(self, x):
        if self.cache is None:
            self.cache = torch.arange(3.0)
        return x * self.cache


compiled = torch.compile(Net(), backend="eager")
for _ in range(3):
    compiled(torch.ones(3))
""",
            good="""import torch

torch.compiler.set_stance("eager_then_compile")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = None

    def forward(self, x):
        if self.cache is None:
            self.cache = torch.arange(3.0)
        return x * self.cache


compiled = torch.compile(Net(), backend="eager")
for _ in range(3):
    compiled(torch.ones(3))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    def forward(self, x):
        self.step += 1
        return x * self.step


compiled = torch.compile(Net(), backend="eager")
for _ in range(4):
    compiled(torch.ones(3))
""",
            because="more than once",
        ),
        RefusalExample(
            program="""import torch


@torch.compile(backend="eager")
def f(x, mask):
    return x * 2 if mask is None else x * mask


f(torch.ones(3), None)
f(torch.ones(3), torch.ones(3))
""",
            because="passed by the caller",
        ),
    ),
)
