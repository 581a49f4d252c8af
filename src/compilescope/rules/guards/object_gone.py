"""Something that a compilation was bound to has been freed since."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, shown

_OBJECT = re.compile(r"because (?P<object>.+) got deallocated")


def _applies(miss: Miss) -> bool:
    return miss.cause.kind == "WEAKREF"


def _object(miss: Miss) -> str:
    match = _OBJECT.search(miss.cause.guard)
    return shown(match["object"]).removesuffix(".__code__") if match else shown(miss.cause.subject)


def _why(miss: Miss) -> str:
    return (
        f"A compilation of `{called(miss)}` was bound to one object, `{_object(miss)}`. That object no longer "
        "exists, and Dynamo threw the compilation away with it."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        source(
            f"Make `{_object(miss)}` once, and keep it for as long as `{called(miss)}` is called, instead of making it anew before each "
            "call; pass what differs as tensors."
        )
    ]


RULE = GuardRule(
    id="object-gone",
    order=10,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import gc

import torch

@torch.compile(backend="eager")
def f(x, g):
    return g(x)

for _ in range(3):
    made = {}
    exec("def g(x): return x + 1", made)
    print(f(torch.ones(3), made["g"]))
    made = None
    gc.collect()
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, g):
    return g(x)

made = {}
exec("def g(x): return x + 1", made)
for _ in range(3):
    print(f(torch.ones(3), made["g"]))
""",
        ),
    ),
)
