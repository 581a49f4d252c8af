"""The first call runs eagerly: what it only prepares is there when the second one is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NeedsRun, NotMeant, Patch
from compilescope.fixes.source.compiled_code import is_compiled
from compilescope.fixes.source.guarded import cause_of
from compilescope.fixes.source.liveness import targets
from compilescope.fixes.source.own_files import own_modules
from compilescope.fixes.source.stance import eager_then_compile
from compilescope.fixes.subject import Subject

_PASSED = ("kwargs[", "args[")
_NAMES = re.compile(r"[A-Za-z_]\w*")


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if cause.count > 1:
        raise NotMeant(
            "the guard failed more than once, so the first call is not the only one that differs"
        )
    if "." not in cause.subject and not cause.subject.startswith("G["):
        # A caller that passes two kinds of things needs both; nothing is prepared by the first.
        raise NotMeant(f"`{cause.subject}` is passed by the caller, not created by the first call")
    if cause.subject.removeprefix("type(").startswith(_PASSED) and not subject.program.facts.seen:
        raise NeedsRun("it is unknown whether every call passes the same object")
    if subject.program.is_own(subject.file) and not _is_prepared(subject, cause.subject):
        raise NotMeant(f"compiled code does not change `{cause.subject}`, so no call prepares it")
    return eager_then_compile(subject)


def _is_prepared(subject: Subject, value: str) -> bool:
    """Does compiled code set it, a part of it, or call a method of it?"""
    name = _NAMES.findall(value)[-1]
    return any(
        _last_name(part) == name and is_compiled(subject, module, node)
        for module in own_modules(subject.program)
        for node in module.walk()
        for part in _changed(node)
    )


def _changed(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for target in targets(node):
        yield target
        if isinstance(target, cst.Subscript):
            yield target.value
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        yield node.func.value
    if isinstance(node, cst.Call) and len(node.args) == 3:  # setattr(self, "table", ...)
        yield node.args[1].value


def _last_name(node: cst.CSTNode) -> str:
    if isinstance(node, cst.SimpleString):
        return str(node.evaluated_value)
    return node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")


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
    why="With the stance `eager_then_compile`, each function is compiled on its second call. A "
    "cache that the first call fills, or an attribute that it adds, exists by then.",
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
        RefusalExample(
            program="""import torch

DOUBLE = False


@torch.compile(backend="eager")
def f(x):
    return x * 2 if DOUBLE else x + 1


f(torch.ones(3))
DOUBLE = True
f(torch.ones(3))
""",
            because="no call prepares it",
        ),
    ),
)
