"""A Dynamo without a past, under a config of one's own; what was set before comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from compilescope.errors import ToolError


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
