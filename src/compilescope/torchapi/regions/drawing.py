"""Random numbers of compiled code, drawn as eager mode draws them."""

from __future__ import annotations


def use_eager_random_numbers() -> None:
    """Inductor's own depend on where graphs begin and end: two versions could not be compared."""
    from torch._inductor import config

    if hasattr(config, "fallback_random"):
        config.fallback_random = True
