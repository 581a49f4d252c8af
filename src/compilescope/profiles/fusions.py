"""Kernels that Inductor might have fused, and why it did not, in its own words."""

from __future__ import annotations

import msgspec

from compilescope.profiles.calls import UserLine


class UnfusedPair(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two kernels of one graph that use the same tensors."""

    first: str
    """What it computes: the names of ATen's operators."""
    second: str
    reason: str
    at: UserLine | None = None
    """The user's line of the first one."""
    count: int = 1
    """How many such pairs there are."""


def read_unfused(text: str | None) -> list[UnfusedPair]:
    """Empty where it is not what was stored."""
    try:
        return msgspec.json.decode(text, type=list[UnfusedPair]) if text else []
    except msgspec.DecodeError:
        return []
