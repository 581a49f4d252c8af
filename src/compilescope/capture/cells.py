"""Notebook cells by their numbers.

A kernel compiles each cell under the name of a file that never exists; only IPython knows which
cell it is, and only while it runs. The record names such code as IPython's own prompt does:
`<ipython-input-3-...>`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec

V = TypeVar("V")


def cell_names() -> dict[str, str]:
    """File -> the name under which the cell is recorded; empty outside of IPython.

    IPython 8 and 9 keep the numbers in a private table; without it cells keep their files' names.
    """
    ipython = sys.modules.get("IPython")
    current = getattr(ipython, "get_ipython", None)
    shell = current() if current is not None else None
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", None)
    if not isinstance(numbers, dict):
        return {}
    return {
        file: _name(file, number)
        for file, number in list(numbers.items())
        if isinstance(number, int) and number > 0 and not file.startswith("<")
    }


def _name(file: str, number: int) -> str:
    return f"<ipython-input-{number}-{PurePath(file).stem}>"


def with_cells(value: V, names: Mapping[str, str]) -> V:
    """The same, with cells named wherever it names a file."""
    return _named(value, names) if names else value


def _named(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, (tuple, list)):
        return type(value)(_named(each, names) for each in value)
    if isinstance(value, dict):
        return {key: _named(each, names) for key, each in value.items()}
    if isinstance(value, msgspec.Struct):
        old = {name: getattr(value, name) for name in value.__struct_fields__}
        new = {name: _named(each, names) for name, each in old.items()}
        changed = {name: each for name, each in new.items() if each != old[name]}
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def text_with_cells(text: str, names: Mapping[str, str]) -> str:
    """Likewise for a text that torch or a graph's printer wrote."""
    for file, name in names.items():
        text = text.replace(file, name)
    return text
