"""Settings of torch's compilers that compilescope changes, and how they are put back.

Each is changed for a block, after which all is as before, or for the rest of a process that
compilescope itself started.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from compilescope.base.errors import ToolError

_ROOM = 256
"""Torch's own default for accumulated_recompile_limit (torch 2.13); recompile_limit, which is met
first, is 8 there."""
_PLENTY = 1 << 16
"""Chosen: as good as no limit."""
_NAMES = (
    "recompile_limit",
    "cache_size_limit",
    "accumulated_recompile_limit",
    "accumulated_cache_size_limit",
)


def compile_arguments() -> tuple[str, ...]:
    """What this torch's `torch.compile` takes: `recompile_limit` is not in 2.11, nor is
    `isolate_recompiles`."""
    return tuple(inspect.signature(torch.compile).parameters)


@contextlib.contextmanager
def roomy_caches(room: int = _ROOM) -> Iterator[None]:
    """Beyond its limit Dynamo would run a function eagerly, and nothing compiled be compared."""
    from torch._dynamo import config

    # Some are names for others: setting both is setting one.
    with contextlib.ExitStack() as stack:
        for name in _NAMES:
            if hasattr(config, name):
                stack.enter_context(config.patch({name: max(room, getattr(config, name) or 0)}))
        yield


@contextlib.contextmanager
def everything_compiled() -> Iterator[None]:
    """However often the program was compiled before, each of its graphs reaches the backend, and
    only once."""
    from torch._dynamo import config

    # Backends on AOTAutograd have Dynamo start again with floats as constants (2.13).
    wanted = {"specialize_float": True} if hasattr(config, "specialize_float") else {}
    with roomy_caches(_PLENTY), config.patch(**wanted):
        yield


def use_eager_random_numbers() -> None:
    """Inductor's own depend on where graphs begin and end: two versions could not be compared."""
    from torch._inductor import config

    if hasattr(config, "fallback_random"):
        config.fallback_random = True


_WRAPPER = "_TorchCompileInductorWrapper"
"""What `torch.compile` makes of its default backend (2.13)."""


def leave_out_inductor() -> None:
    """For the rest of this process graphs that are meant for Inductor are traced and partitioned by
    AOTAutograd, and then run as they are. Where this torch has no such wrapper, all is as it was.
    """
    wrapper = getattr(torch, _WRAPPER, None)
    if wrapper is not None:
        wrapper.__call__ = lambda _, graph, inputs: _aot_eager(graph, inputs)


def _aot_eager(graph: Any, inputs: Any) -> Any:
    from torch._dynamo import lookup_backend

    return lookup_backend("aot_eager")(graph, inputs)


_MODULE, _NAME = "torch._dynamo.guards", "profile_guard_manager"


def skip_guard_timing() -> bool:
    """For the rest of this process. False where this torch has no such thing."""
    module = importlib.import_module(_MODULE)
    if not callable(getattr(module, _NAME, None)):
        return False
    setattr(module, _NAME, lambda *args, **kwargs: 0.0)
    return True


@contextmanager
def dynamo_alone(changes: Mapping[str, Any]) -> Iterator[None]:
    """Nothing compiled before counts, and nothing compiled within stays."""
    import torch._dynamo.config as config

    unknown = [name for name in changes if not hasattr(config, name)]
    if unknown:
        raise ToolError(f"This torch's Dynamo config has no {', '.join(unknown)}.")
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    autocast = torch.is_autocast_enabled("cpu")
    torch.compiler.reset()
    try:
        with config.patch(dict(changes)):
            yield
    finally:
        # A call that raised may not have put back what it had set.
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        torch.set_autocast_enabled("cpu", autocast)
        torch.compiler.reset()
