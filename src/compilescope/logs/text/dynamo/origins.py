"""Whose code a file is, where the log of another machine names it.

What lies between the program and its compiler (torch, torch_xla, Tenstorrent's overrides) is the
compiler's own: no line of it is one that the program's author can change.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

import msgspec

from compilescope.model.stack import Frame, Origin, origin_of

_COMPILERS = re.compile(
    r"(?:^|[/\\])(?:tt_torch|torch_xla|torch_plugin_tt|torch_xla2|torchax)[/\\]"
    # A torch that was built in place, or whose root a log has taken off.
    r"|(?:^|[/\\])torch[/\\](?:_dynamo|_functorch|_inductor|_ops|_library|_subclasses|_higher_order"
    r"_ops|_compile|_tensor|nn[/\\](?:modules|functional)|fx|utils|autograd|optim|overrides)\b"
)


@functools.lru_cache(maxsize=8192)
def origin(file: str) -> Origin:
    if _COMPILERS.search(file):
        return "torch"
    return origin_of(file)


def is_override(file: str) -> bool:
    """Does every operator of the program run through it, though the program does not name it?"""
    return origin(file) == "torch" and origin_of(file) != "torch" and "/torch/" not in file


def recast(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    return tuple([_recast(frame) for frame in frames])


def _recast(frame: Frame) -> Frame:
    own = origin(frame.file)
    return frame if frame.origin == own else msgspec.structs.replace(frame, origin=own)


def is_program(frame: Frame) -> bool:
    return frame.origin in ("user", "library")
