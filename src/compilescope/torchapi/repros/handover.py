"""Observes how Dynamo hands a graph to the backend: the graph, its inputs and the backend.

Live, by standing around that call; or afterwards, from the traceback of what the backend raised.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch.fx import GraphModule

from compilescope.torchapi.compilation.current import current_model
from compilescope.torchapi.stacks import callers

_POINTS = ("_call_user_compiler", "call_user_compiler")


@dataclass(frozen=True)
class BackendCall:
    """A graph on its way to the backend."""

    module: GraphModule
    inputs: Sequence[Any]
    compiler: Any
    """The backend, in torch's wrappers."""
    compile: Callable[[], Callable[..., Any]]
    """Goes on: gives the compiled function, or raises what the backend raised."""

    frame: str = ""
    """The function that is compiled."""

    @property
    def model(self) -> str:
        return current_model() or self.frame

    @property
    def place(self) -> tuple[str, int | None]:
        """The user's line that called it."""
        frames = callers()
        return (frames[-1].file, frames[-1].line) if frames else ("", None)


@contextmanager
def watched_backends(watch: Callable[[BackendCall], Any]) -> Iterator[None]:
    """`watch` returns the compiled function in the backend's stead, or raises.

    On a torch without such a point nothing is watched, and RuntimeError says so.
    """
    from torch._dynamo.output_graph import OutputGraph

    point = next((name for name in _POINTS if hasattr(OutputGraph, name)), None)
    if point is None:
        raise RuntimeError("this torch has no place to observe backends from")
    original = getattr(OutputGraph, point)

    @functools.wraps(original)
    def around(self: Any, gm: GraphModule, *args: Any, **kwargs: Any) -> Any:
        inputs = args[0] if args else kwargs.get("example_inputs", ())
        return watch(
            BackendCall(gm, inputs, self.compiler_fn, lambda: original(self, gm, *args, **kwargs))
        )

    setattr(OutputGraph, point, around)
    try:
        yield
    finally:
        setattr(OutputGraph, point, original)


def call_of(error: BaseException) -> BackendCall | None:
    """What the backend was given that raised it, from the frames of its traceback."""
    trace = error.__traceback__
    found: BackendCall | None = None
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name in _POINTS:
            seen = frame.f_locals
            module, owner = seen.get("gm"), seen.get("self")
            if isinstance(module, GraphModule) and owner is not None:
                inputs = seen.get("example_inputs", ())
                code = getattr(getattr(owner, "root_tx", None), "f_code", None)
                name = getattr(code, "co_name", "")
                found = BackendCall(module, inputs, owner.compiler_fn, _over, name)
        trace = trace.tb_next
    return found


def _over() -> Callable[..., Any]:
    raise RuntimeError("it is already compiled")
