"""A rank that repeats a call does so alone: the others do not know of it, and would never answer.

What DistributedDataParallel is around is called without it. Whatever else needs other ranks ends
the process, which notes the region first: the next process does not replay it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch.distributed

from compilescope.change.repair.trials.child.ranks import note_collective
from compilescope.instrument.torchapi.collectives import BeforeCollectives


def is_in_group() -> bool:
    """Do several processes work together, this one among them?"""
    there = torch.distributed.is_available()
    return there and bool(torch.distributed.is_initialized())


def keep_groups() -> None:
    """To the end of the process, and past it: while a group of gloo is taken down, a thread of its
    own may wait for the interpreter, which waits for that thread (torch 2.13)."""
    if not torch.distributed.is_available():
        return

    def keeping(make: Any) -> Any:
        @functools.wraps(make)
        def made(*args: Any, **kwargs: Any) -> Any:
            found = make(*args, **kwargs)
            for group in filter(None, (found, torch.distributed.group.WORLD)):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
            return found

        return made

    for name in ("init_process_group", "new_group"):
        setattr(torch.distributed, name, keeping(getattr(torch.distributed, name)))


@contextlib.contextmanager
def one_process() -> Iterator[None]:
    """Within it data-parallel modules neither compare their buffers nor wait for gradients."""
    if not is_in_group():
        yield
        return
    from torch.nn.parallel import DistributedDataParallel

    kind: Any = DistributedDataParallel
    before = kind.forward
    kind.forward = _forward_alone
    try:
        yield
    finally:
        kind.forward = before


def _forward_alone(self: Any, *inputs: Any, **kwargs: Any) -> Any:
    return self.module(*inputs, **kwargs)


def alone(folder: Path, region: int) -> contextlib.AbstractContextManager[Any]:
    """Around an eager replay. Dynamo compiles nothing within it."""

    def stop() -> None:
        note_collective(folder, region)
        os._exit(1)

    return BeforeCollectives(stop) if is_in_group() else contextlib.nullcontext()
