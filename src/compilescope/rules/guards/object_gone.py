"""An object that a compilation was tied to has been freed."""

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
        f"A compilation of `{called(miss)}` was tied to one object, `{_object(miss)}`. That object "
        "no longer exists, so Dynamo discarded the compilation."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        source(
            f"Create `{_object(miss)}` once, and keep it alive as long as you call "
            f"`{called(miss)}`, instead of recreating it before each call. Pass what differs as "
            "tensors."
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
