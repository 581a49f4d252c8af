"""The large modules of torch that a first compilation imports.

Processes that compilescope starts to compile in import them ahead, or by a quicker way.
"""

from __future__ import annotations

import importlib.util
from contextlib import suppress

DYNAMO = "torch._dynamo"
"""Importing it runs no operator, and starts no thread (torch 2.13)."""
LARGE = ("torch._dynamo", "torch._functorch.aot_autograd", "torch._inductor.compile_fx")
"""Those that import most of the others."""


def imports_start_workers() -> bool:
    """Importing Inductor starts its compile workers where there is Triton (torch 2.13)."""
    with suppress(ImportError, ValueError):
        return importlib.util.find_spec("triton") is not None
    return False
