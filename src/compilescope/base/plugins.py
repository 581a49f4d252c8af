"""Discovery: the public modules of a package each carry one named object, or a tuple of several.

No decorators and no import side effects: a module is a member because it lies in the folder.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Container
from importlib.machinery import all_suffixes
from types import ModuleType
from typing import TypeVar

from compilescope.base.errors import ToolError

T = TypeVar("T")


def discover(
    package: ModuleType,
    attribute: str,
    kind: type[T],
    *,
    several: str | None = None,
    without: Container[str] = (),
) -> list[T]:
    """The objects of each public module of `package`, in order of module name; see `carried`.
    Modules called as those in `without` are not imported."""
    found: dict[str, T] = {}
    for module in public_modules(package):
        if module in without:
            continue
        for each in carried(f"{package.__name__}.{module}", attribute, kind, several=several):
            key = str(getattr(each, "id", None) or getattr(each, "name", module))
            if key in found:
                raise ToolError(
                    f"Two modules in {package.__name__} define the {attribute} {key!r}."
                )
            found[key] = each
    return list(found.values())


def carried(
    name: str, attribute: str, kind: type[T], *, several: str | None = None
) -> tuple[T, ...]:
    """What the module called `name` carries: the object called `attribute`, or those of the tuple
    called `several`."""
    module = importlib.import_module(name)
    many = getattr(module, several, None) if several is not None else None
    members = many if isinstance(many, tuple) else (getattr(module, attribute, None),)
    if not members or not all(isinstance(each, kind) for each in members):
        raise ToolError(f"The module {name} has no {attribute} of type {kind.__name__}.")
    return members


def public_modules(package: ModuleType) -> list[str]:
    """Their names within `package`, sorted; nothing is imported."""
    # As pkgutil.iter_modules, which takes ten times as long: it was a thirtieth of a small command.
    suffixes = {*all_suffixes()}
    found = set()
    for folder in package.__path__:
        for entry in os.scandir(folder):
            name, _, suffix = entry.name.partition(".")
            if f".{suffix}" in suffixes or (not suffix and _is_package(entry)):
                found.add(name)
    return sorted(name for name in found if not name.startswith("_"))


def _is_package(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir() and os.path.isfile(os.path.join(entry.path, "__init__.py"))
