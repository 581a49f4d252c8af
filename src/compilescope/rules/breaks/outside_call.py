"""A call that Dynamo cannot look into: clocks, files, the system, C extensions, skipped modules."""

from __future__ import annotations

import re

from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example

_TYPES = (
    "Attempted to call function marked as skipped",
    "Attempted to inline function marked as skipped",
    "Unsupported function call",
    "Failed to trace builtin operator",
    "Unsupported method call",
)
_QUALNAME = re.compile(r"(?:qualname|builtin|method)[: ]+`?([\w.]+)")


def _applies(cause: Cause) -> bool:
    return cause.site.gb_type.startswith(_TYPES)


def _name(cause: Cause) -> str:
    name = called(cause.spot.expression)
    if name:
        return name
    match = _QUALNAME.search(cause.site.context)
    return match.group(1) if match else cause.text


def _why(cause: Cause) -> str:
    return (
        f"Dynamo cannot look into `{_name(cause)}`: it is C code, or code that Dynamo was told to leave "
        "alone. It runs between two graphs."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    name = _name(cause)
    return [
        source(
            f"Call `{cause.text}` before the compiled function and pass what it returns to "
            f"`{cause.function}` as an argument."
        ),
        source(
            f"If `{name}` returns the same every time, say so: wrap it in a function of your own marked "
            "`@torch.compiler.assume_constant_result`."
        ),
        judgement(
            f"If `{name}` computes on tensors, make it an operator with `torch.library.custom_op` and "
            "register its fake; then it stays inside the graph."
        ),
    ]


RULE = BreakRule(
    id="outside-call",
    category="skipped-function",
    order=80,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import time
import torch

def f(x):
    return x + time.time()

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import time
import torch

def f(x, now):
    return x + now

torch.compile(f, backend="eager")(torch.ones(3), torch.tensor(time.time()))
""",
        ),
        Example(
            bad="""import os
import torch

def f(x):
    return x + os.getpid()

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import os
import torch

@torch.compiler.assume_constant_result
def own_pid():
    return os.getpid()

def f(x):
    return x + own_pid()

torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
    ),
)
