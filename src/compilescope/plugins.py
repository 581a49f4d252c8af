"""Discovery: the public modules of a package each carry one named object.

No decorators and no import side effects: a module is a member because it lies in the folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import TypeVar

from compilescope.errors import ToolError

T = TypeVar("T")


def discover(package: ModuleType, attribute: str, kind: type[T]) -> list[T]:
    """The object called `attribute` of each public module of `package`, in order of module name."""
    found: dict[str, T] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda item: item.name):
        if info.name.startswith("_"):
            continue
        name = f"{package.__name__}.{info.name}"
        candidate = getattr(importlib.import_module(name), attribute, None)
        if not isinstance(candidate, kind):
            raise ToolError(f"The module {name} has no {attribute} of type {kind.__name__}.")
        key = str(getattr(candidate, "id", None) or getattr(candidate, "name", info.name))
        if key in found:
            raise ToolError(f"Two modules in {package.__name__} define the {attribute} {key!r}.")
        found[key] = candidate
    return list(found.values())
