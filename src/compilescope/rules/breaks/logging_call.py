"""Logging, warnings and progress bars inside compiled code."""

from __future__ import annotations

from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.remedy import Remedy, config, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example

_LOG_METHODS = ("debug", "info", "warning", "warn", "error", "critical", "exception", "log")


def _applies(cause: Cause) -> bool:
    # torch 2.13 names `_warnings.warn` as an example in unrelated explanations: ask the context.
    if cause.says("logging.Logger method") or "module: _warnings" in cause.site.context:
        return True
    name = called(cause.spot.expression)
    if name.startswith(("logging.", "warnings.warn")) or "tqdm" in name:
        return True
    return "tqdm" in cause.site.context


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` writes to the outside world when the line is reached; a graph only computes "
        "tensors."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    name = called(cause.spot.expression)
    remedies = [
        source(
            f"Take `{cause.text}` out of the compiled code, or keep it for eager runs: put it under "
            "`if not torch.compiler.is_compiling():`."
        )
    ]
    if name and name.rsplit(".", 1)[-1] in _LOG_METHODS:
        remedies.append(
            config(
                f"`torch._dynamo.config.ignore_logging_functions.add({name})`: compiled code then logs "
                "nothing there."
            )
        )
    return remedies


RULE = BreakRule(
    id="logging-call",
    category="logging",
    order=36,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import logging
import torch

log = logging.getLogger("example")

def f(x):
    y = x + 1
    log.info("mean %s", 3)
    return y * 2

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import logging
import torch

log = logging.getLogger("example")

def f(x):
    y = x + 1
    if not torch.compiler.is_compiling():
        log.info("mean %s", 3)
    return y * 2

torch.compile(f, backend="eager")(torch.ones(3))
""",
            configured="""import logging
import torch

log = logging.getLogger("example")

def f(x):
    y = x + 1
    log.info("mean %s", 3)
    return y * 2

with torch._dynamo.config.patch(ignore_logging_functions={log.info}):
    torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        Example(
            bad="""import warnings
import torch

def f(x):
    y = x + 1
    warnings.warn("careful", stacklevel=1)
    return y * 2

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import warnings
import torch

def f(x):
    y = x + 1
    if not torch.compiler.is_compiling():
        warnings.warn("careful", stacklevel=1)
    return y * 2

torch.compile(f, backend="eager")(torch.ones(3))
""",
            configured="""import warnings
import torch

def f(x):
    y = x + 1
    warnings.warn("careful", stacklevel=1)
    return y * 2

with torch._dynamo.config.patch(ignore_logging_functions={warnings.warn}):
    torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
    ),
)
