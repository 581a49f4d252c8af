"""The large modules of torch that a first compilation imports.

Processes that compilescope starts to compile in import them ahead, or by a quicker way.
"""

from __future__ import annotations

import importlib.util
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import suppress

LARGE = ("torch._dynamo", "torch._functorch.aot_autograd", "torch._inductor.compile_fx")
"""Those that import most of the others. Importing the first runs no operator, and starts no thread
(torch 2.13)."""
_BACKENDS = "torch._dynamo.backends"
"""To look up any backend by its name, Dynamo imports all modules of this package (torch 2.13)."""


def first_imports() -> Iterator[str]:
    """What `torch.compile` imports in nearly every program, whatever its backend; to be imported
    one by one, for what comes later is looked up in what came before."""
    dynamo, autograd, _ = LARGE
    yield dynamo
    if imports_start_workers():
        return
    yield autograd
    folders = getattr(sys.modules.get(_BACKENDS), "__path__", [])
    for each in pkgutil.iter_modules(folders):
        yield f"{_BACKENDS}.{each.name}"


def imports_start_workers() -> bool:
    """Importing Inductor starts its compile workers where there is Triton (torch 2.13)."""
    with suppress(ImportError, ValueError):
        return importlib.util.find_spec("triton") is not None
    return False
