"""Discovery: the public modules of a package each carry one named object, or a tuple of several.

No decorators and no import side effects: a module is a member because it lies in the folder, or
because an installed package names it in its entry points.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Container
from functools import cache
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
    group: str = "",
) -> list[T]:
    """Return the objects of each public module of `package`, in order of module name (see
    `carried`), then those of installed packages (`plugged`, under `group`). Modules called as those
    in `without` are not imported."""
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
    theirs = plugged(group, attribute, kind, several=several) if group else {}
    return [*found.values(), *(each for many in theirs.values() for each in many)]


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


def plugged(
    group: str, attribute: str, kind: type[T], *, several: str | None = None
) -> dict[str, tuple[T, ...]]:
    """Return what the modules carry that installed packages name under `group`, by module. What
    cannot be loaded is left out, with a line on stderr: no program may fail for it."""
    found = {}
    for module in plugged_modules(group):
        try:
            found[module] = carried(module, attribute, kind, several=several)
        except Exception as error:
            import logging

            reason = error.message if isinstance(error, ToolError) else repr(error)
            told = logging.getLogger(__name__)
            told.warning("compilescope: plugin %s (%s) is left out: %s", module, group, reason)
    return found


@cache
def plugged_modules(group: str) -> tuple[str, ...]:
    """Return the modules that installed packages name under `group`, sorted."""
    found = set()
    for text in _entry_point_texts():
        _, _, rest = text.partition(f"\n[{group}]\n")
        for line in rest.partition("\n[")[0].splitlines():
            _, equals, value = line.partition("=")
            if equals and not line.lstrip().startswith("#"):
                found.add(value.partition(":")[0].strip())
    return tuple(sorted(found))


@cache
def _entry_point_texts() -> tuple[str, ...]:
    # As importlib.metadata, which takes thirty times as long: every report asks.
    found = {}
    for folder in sys.path:
        try:
            names = [entry.name for entry in os.scandir(folder or os.curdir)]
        except OSError:
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")) or name in found:
                continue
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                    text = file.read()
            except (OSError, ValueError):
                continue
            if "[compilescope." in text:
                found[name] = "\n" + text
    return tuple(found.values())


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
