"""A dimension of a tensor takes another size."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, config, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, dynamo_name, shown, size_of, wrapper_note


def _applies(miss: Miss) -> bool:
    return size_of(miss.cause.subject) is not None and miss.cause.kind != "SHAPE"


def _parts(miss: Miss) -> tuple[str, int]:
    return size_of(miss.cause.subject) or (miss.cause.subject, 0)


def _again(miss: Miss) -> str:
    """The values told are the first that failed; more may have."""
    if miss.cause.count < 2:
        return ""
    return f" It failed in {miss.cause.count} recompiles: other sizes came after, and 0 and 1 are never served by a dynamic graph."


def _why(miss: Miss) -> str:
    tensor, dim = _parts(miss)
    return (
        f"`{called(miss)}` was compiled for a `{shown(tensor)}` whose dimension {dim} is {miss.cause.expected}; this call has "
        f"{miss.cause.actual}. Dynamo takes a size for a constant until it sees a second one, and with `dynamic=False` always."
        f"{_again(miss)}{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    tensor, dim = _parts(miss)
    text, name = shown(tensor), dynamo_name(tensor)
    remedies = [
        source(
            f"Say that it varies, before the first call: `torch._dynamo.mark_dynamic({text}, {dim})`, or "
            f"`torch.compile(..., dynamic=True)` for all sizes of `{called(miss)}`. One graph then serves every size from 2 up; its "
            "kernels may be a little slower than those made for one size."
        )
    ]
    if name:
        remedies.append(
            config(
                f'Where `{text}` is out of reach before the call: `torch.compiler.config.dynamic_sources = "{name}:{dim}"` marks the '
                "same dimension by name."
            )
        )
    remedies.append(
        judgement(
            f"Or keep to few sizes: pad dimension {dim} of `{text}` to one length or a few, if shapes come from the data (a last, "
            "smaller batch: `drop_last=True`). The padding is computed too."
        )
    )
    return remedies


RULE = GuardRule(
    id="size-change",
    order=220,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager")
compiled(torch.ones(3))
compiled(torch.ones(4))
""",
            good="""import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager")
for size in (3, 4, 5):
    x = torch.ones(size)
    torch._dynamo.mark_dynamic(x, 0)
    compiled(x)
""",
            configured="""import torch
import torch.compiler.config

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager")
with torch.compiler.config.patch(dynamic_sources="L['x']:0"):
    for size in (3, 4, 5):
        compiled(torch.ones(size))
""",
        ),
        Example(
            bad="""import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager", dynamic=False)
for size in (3, 4, 5):
    compiled(torch.ones(size))
""",
            good="""import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager", dynamic=True)
for size in (3, 4, 5):
    compiled(torch.ones(size))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

for size in (3, 5, 7):
    f(torch.ones(size))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

for size in (3, 5, 7):
    f(torch.nn.functional.pad(torch.ones(size), (0, 8 - size)))
""",
        ),
    ),
)
