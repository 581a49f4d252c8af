"""Which environment variables a warm process must share with the program, and which it need not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from compilescope.base.package import PACKAGE

Changes: TypeAlias = "dict[str, str | None]"
"""Of variables; None: it is not set."""
Imports: TypeAlias = "list[tuple[str, Changes]]"
"""Packages in the order in which a program imports them, each with what it has changed by then."""
_FREE = (
    "COMPILESCOPE_",
    "PYTEST_CURRENT_TEST",
    "TORCHINDUCTOR_CACHE_DIR",
    # Inductor writes an address of its own process there.
    "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR",
)
"""Ours, and those that torch reads when it needs them and not when it is imported."""
COLD = "cold"
"""The file in which a child says that it is no use: a fresh process is needed, or a warm one that
sets other variables before it imports torch, and what torch imports."""
IMPORTED = "imported"
"""The file in which a child says which modules it had to import."""


def plain(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what only one run of the program needs."""
    found = {name: value for name, value in environment.items() if not name.startswith(_FREE)}
    path = [entry for entry in _path(environment) if not _is_boot(entry)]
    found.pop("PYTHONPATH", None)
    if path:
        found["PYTHONPATH"] = os.pathsep.join(path)
    return found


def differing(environment: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Names of variables that are not the same in both, but for those that need not be."""
    one, two = plain(environment), plain(other)
    return sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))


def changed(environment: Mapping[str, str], changes: Changes) -> dict[str, str]:
    new = {**environment, **changes}
    return {name: value for name, value in new.items() if value is not None}


def to_become(environment: Mapping[str, str], other: Mapping[str, str]) -> Changes:
    """What is to be set in `environment`, or taken out of it, so that it is as the other."""
    goal = plain(other)
    return {name: goal.get(name) for name in differing(environment, other)}


def _path(environment: Mapping[str, str]) -> list[str]:
    return [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _is_boot(entry: str) -> bool:
    path = Path(entry)
    return str(path).startswith(PACKAGE) and path.name == "boot"
