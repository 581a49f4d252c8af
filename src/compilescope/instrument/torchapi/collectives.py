"""What processes of a group do together, seen when one of them is about to begin it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

_NAMESPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd")


class BeforeCollectives(TorchDispatchMode):  # type: ignore[misc]
    """Within it `do` is called before each of them. Dynamo compiles nothing there."""

    def __init__(self, do: Callable[[], None]) -> None:
        super().__init__()
        self._do = do

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in _NAMESPACES:
            self._do()
        return func(*args, **(kwargs or {}))
