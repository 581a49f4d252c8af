"""Where a node comes from, where it has no line of the user's: the module that it was called in."""

from __future__ import annotations

import inspect
import re
from typing import Any

from torch.fx import Node

_ROOT = re.compile(r"^L\[['\"][^'\"]*['\"]\]\.?")


def module_of(node: Node) -> str:
    """As `model.get_submodule` names it; empty where the node lies in none."""
    name, _ = _innermost(node)
    # Dynamo writes `L['self'].layers.0`, or with brackets where a name is no word.
    return _ROOT.sub("", name).replace("['", ".").replace("']", "").replace("_modules.", "")


def source_of_module(node: Node) -> tuple[str | None, int | None]:
    """The file and line of its `forward`."""
    _, kind = _innermost(node)
    forward = getattr(kind, "forward", None)
    try:
        return inspect.getsourcefile(forward), forward.__code__.co_firstlineno  # type: ignore
    except (TypeError, AttributeError):
        return None, None


def _innermost(node: Node) -> tuple[str, Any]:
    stack = node.meta.get("nn_module_stack") or {}
    for found in reversed(list(stack.values())):
        if isinstance(found, tuple) and len(found) == 2:
            return str(found[0]), found[1]
    return "", None
