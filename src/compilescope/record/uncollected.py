"""Switches Python's garbage collector off for a block in which many objects are made and kept.

It is on again afterwards exactly if it was on before.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """While very many objects are made and all are kept, looking for garbage is a third of it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
