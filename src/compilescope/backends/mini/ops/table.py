"""The table of all ATen operators that can be translated for the small compiler.

The adapter declares exactly these as its supported ops, so an operator is added in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compilescope.backends.mini.ops import creation, lookups, matmul, pointwise, reductions, views

Handler = Callable[..., Any]
"""Is given the builder and the operator's arguments; returns a Value, or a tuple of them."""
OPS: dict[str, Handler] = {
    **pointwise.OPS,
    **reductions.OPS,
    **views.OPS,
    **matmul.OPS,
    **lookups.OPS,
    **creation.OPS,
}
