"""Constraints and devices as Python source, so that a repro checks what the program checked."""

from __future__ import annotations

import ast
import inspect
import os
import sys
import textwrap
from dataclasses import dataclass, field
from typing import Any

import msgspec

from compilescope.backends.configuration import Configuration
from compilescope.backends.device_files import shipped_devices
from compilescope.model.device import Device
from compilescope.rules.constraint import Constraint
from compilescope.torchapi.graph_code import Unwritable


@dataclass
class ConfigurationCode:
    """The source of a backend's configuration."""

    arguments: list[str] = field(default_factory=list)
    """Keyword arguments of the backend."""
    imports: dict[str, str] = field(default_factory=dict)
    """Name -> the line that brings it."""
    folders: list[str] = field(default_factory=list)
    """Where Python finds the user's modules."""
    definitions: list[str] = field(default_factory=list)
    """Source of classes that no module can be asked for."""


def configuration_code(configuration: Configuration) -> ConfigurationCode:
    code = ConfigurationCode()
    if configuration.device is not None:
        code.arguments.append(f"device={_device(configuration.device, code)}")
    extra = [_made(each, code) for each in configuration.extra]
    if extra or configuration.device is None:
        # Without a list the environment of whoever runs it would have a say.
        code.arguments.append(f"constraints=[{', '.join(extra)}]")
    if configuration.device is None:
        code.arguments += _nothing_from_environment(configuration)
    return code


def _nothing_from_environment(configuration: Configuration) -> list[str]:
    kinds = {type(each).__name__ for each in configuration.extra}
    return ["alignment=1"] if "ShapeConstraint" not in kinds else []


def _device(device: Device, code: ConfigurationCode) -> str:
    if device in shipped_devices():
        return repr(device.name)
    return _value(device, code)


def _made(constraint: Constraint, code: ConfigurationCode) -> str:
    """The call that makes such a constraint."""
    kind = type(constraint)
    _bring(kind, code)
    args, kwargs = constraint.made_with
    words = [_value(value, code) for value in args]
    words += [f"{name}={_value(value, code)}" for name, value in kwargs.items()]
    return f"{kind.__name__}({', '.join(words)})"


def _value(value: Any, code: ConfigurationCode) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = ", ".join(_value(item, code) for item in value)
        if isinstance(value, tuple):
            return f"({items},)" if value else "()"
        return f"[{items}]" if isinstance(value, list) else f"{type(value).__name__}([{items}])"
    if isinstance(value, dict):
        pairs = (f"{_value(key, code)}: {_value(item, code)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if str(value).startswith("torch.") and type(value).__name__ == "dtype":
        return str(value)
    if isinstance(value, msgspec.Struct):
        _bring(type(value), code)
        given = (
            f"{name}={_value(getattr(value, name), code)}"
            for name in value.__struct_fields__
            if getattr(value, name) != _default(value, name)
        )
        return f"{type(value).__name__}({', '.join(given)})"
    raise Unwritable(f"a constraint was made with an object of type {type(value).__name__}")


def _default(record: msgspec.Struct, name: str) -> Any:
    for each in msgspec.structs.fields(record):
        if each.name == name:
            made = each.default_factory
            return made() if callable(made) else each.default
    return None


def _bring(kind: type, code: ConfigurationCode) -> None:
    """Make a class known in the script: by import, or by its own source."""
    if kind.__name__ in code.imports:
        return
    module = sys.modules.get(kind.__module__)
    if module is not None and getattr(module, kind.__name__, None) is kind:
        if kind.__module__.startswith("compilescope."):
            code.imports[kind.__name__] = f"from {kind.__module__} import {kind.__name__}"
            return
        file = getattr(module, "__file__", None)
        if file and kind.__module__ != "__main__":
            depth = kind.__module__.count(".") + (os.path.basename(file) == "__init__.py")
            folder = os.path.abspath(file)
            for _ in range(depth + 1):
                folder = os.path.dirname(folder)
            if folder not in code.folders:
                code.folders.append(folder)
            code.imports[kind.__name__] = f"from {kind.__module__} import {kind.__name__}"
            return
    code.imports[kind.__name__] = ""
    code.definitions += [
        text for text in _definitions(kind, module) if text not in code.definitions
    ]


def _definitions(kind: type, module: Any) -> list[str]:
    """A class, and all that its file says at top level of the names in it."""
    try:
        own = textwrap.dedent(inspect.getsource(kind))
        whole = inspect.getsource(module) if module is not None else ""
        top, tree = ast.parse(whole).body, ast.parse(own)
    except (OSError, TypeError, SyntaxError):
        raise Unwritable(f"the source of the constraint {kind.__name__} is not to be had") from None
    wanted, used = {name for name in _names(tree)} - {kind.__name__}, set[int]()
    changed = True
    while changed:
        changed = False
        for number, statement in enumerate(top):
            if number in used or not (_bound(statement) & wanted):
                continue
            used.add(number)
            wanted |= _names(statement)
            changed = True
    needed = [ast.get_source_segment(whole, top[number]) or "" for number in sorted(used)]
    return [*needed, own.strip()]


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        return {target.id for target in statement.targets if isinstance(target, ast.Name)}
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return {statement.target.id}
    return set()
