"""Compiling as if for the first time: Inductor's caches on disk, empty for a while."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import torch


@contextmanager
def fresh_cache() -> Iterator[None]:
    """Within the block nothing compiled before is found, in memory or on disk, and afterwards
    nothing of it is left.

    Before the first such block Inductor is used once: what a process pays a single time (imports,
    a look at the C++ compiler, precompiled headers) is no part of what the block measures.
    """
    _use_inductor_once()
    torch.compiler.reset()
    with ExitStack() as stack:
        try:
            from torch._inductor.utils import fresh_cache as torchs_own

            stack.enter_context(torchs_own())
        except ImportError:  # The name is private: without it, no cache is as good as an empty one.
            from torch._inductor import config

            stack.enter_context(config.patch(force_disable_caches=True))
        yield
    torch.compiler.reset()


@functools.cache
def _use_inductor_once() -> None:
    # Without a compiler it fails here as it will in the block, which is where to say so.
    with suppress(Exception):
        torch.compile(lambda x: x + 1)(torch.ones(8))
