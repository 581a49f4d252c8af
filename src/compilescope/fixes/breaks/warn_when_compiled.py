"""A warning given while the code is compiled, which is when it would be seen first."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.outlining import outline_constant
from compilescope.fixes.source.outputs import is_told_once, output_call
from compilescope.fixes.subject import Subject

_STATES = "The warning appears when the code is compiled, before any of it runs."


def _propose(subject: Subject) -> Patch:
    module, call = subject.module, output_call(subject)
    if module.calls(call, "warnings.warn"):
        _check_level(call)
    elif not is_told_once(call):
        raise NotMeant("it is shown on every call, not once")
    edit = Edit(module)
    outline_constant(edit, call, "warn")
    return Patch(edit.files(), states=_STATES, allows=frozenset({"moves-output", "drops-output"}))


def _check_level(call: cst.Call) -> None:
    for number, arg in enumerate(call.args):
        name = (
            arg.keyword.value if arg.keyword is not None else ("", "", "stacklevel")[min(number, 2)]
        )
        if name == "stacklevel" and not (
            isinstance(arg.value, cst.Integer) and arg.value.value == "1"
        ):
            raise Refused("the warning names a line of the caller, which would be a different one")


FIX = Fix(
    id="warn-when-compiled",
    title="warn when the code is compiled",
    rules=frozenset({"logging-call"}),
    order=105,
    kind="source",
    why="Such a message is shown once, and Dynamo calls a function under "
    "`assume_constant_result` once, while tracing. A cached message is not shown again.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import warnings
import torch


def f(x, scale=2):
    y = x + 1
    warnings.warn(f"scale {scale} is old")  # since 2020
    return y * scale


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import warnings
import torch


@torch.compiler.assume_constant_result
def warn_in_f(scale):
    warnings.warn(f"scale {scale} is old")


def f(x, scale=2):
    y = x + 1
    warn_in_f(scale)  # since 2020
    return y * scale


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        FixExample(
            bad="""import functools
import logging
import torch
from torch import nn

logger = logging.getLogger("net")
logger.warning_once = functools.lru_cache(None)(logger.warning)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 4

    def forward(self, x):
        if x.shape[0] < self.size:
            logger.warning_once(f"padded from {x.shape[0]} to {self.size}")
        return x + self.size


net = torch.compile(Net(), backend="eager")
net(torch.ones(3))
""",
            good="""import functools
import logging
import torch
from torch import nn

logger = logging.getLogger("net")
logger.warning_once = functools.lru_cache(None)(logger.warning)


@torch.compiler.assume_constant_result
def warn_in_net_forward(x_shape_0, self_size):
    logger.warning_once(f"padded from {x_shape_0} to {self_size}")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 4

    def forward(self, x):
        if x.shape[0] < self.size:
            warn_in_net_forward(x.shape[0], self.size)
        return x + self.size


net = torch.compile(Net(), backend="eager")
net(torch.ones(3))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import warnings
import torch


def f(x):
    y = x + 1
    warnings.warn("careful", stacklevel=2)
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="line of the caller",
        ),
    ),
)
