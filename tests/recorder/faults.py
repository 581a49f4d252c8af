"""Makes hooks fail: what one would note, it raises instead.

Imports nothing of torch: a program under capture plants before it imports torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from compilescope.base import plugins


class PlantedFault(Exception):
    """Raised by a hook that was made to fail."""


def failing(hook: Any) -> Any:
    """A hook whose observers raise, each where it would have looked."""

    def fail(*_: Any) -> Any:
        raise PlantedFault(f"planted in {hook.id}")

    names = [name for name in ("before", "after", "settles") if getattr(hook, name) is not None]
    return dataclasses.replace(hook, **dict.fromkeys(names, fail))


def finding_faults(which: str = "all") -> Callable[..., list[Any]]:
    """`plugins.discover`, but the hook called `which`, or all of them, fails."""
    discover = plugins.discover

    def discover_failing(package: Any, name: str, kind: type, **more: Any) -> list[Any]:
        found: list[Any] = discover(package, name, kind, **more)
        if name != "HOOK":
            return found
        return [failing(hook) if which in (hook.id, "all") else hook for hook in found]

    return discover_failing


def plant_in_program() -> None:
    """In a process that has not imported torch yet: every hook will fail."""
    plugins.discover = finding_faults()
