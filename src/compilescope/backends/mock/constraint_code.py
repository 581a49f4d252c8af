"""Constraints and devices as Python source, so that a repro checks what the program checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from compilescope.backends.device_files import shipped_devices
from compilescope.backends.mock.configuration import Configuration
from compilescope.model.device import Device
from compilescope.rules.hardware.constraint import Constraint
from compilescope.torchapi.repros.constants import Unwritable
from compilescope.torchapi.repros.definitions import Definitions


@dataclass
class ConfigurationCode(Definitions):
    """The source of a backend's configuration."""

    arguments: list[str] = field(default_factory=list)
    """Keyword arguments of the backend."""


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
    code.bring(kind)
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
        code.bring(type(value))
        given = (
            f"{name}={_value(getattr(value, name), code)}"
            for name in value.__struct_fields__
            if getattr(value, name) != _default(value, name)
        )
        return f"{type(value).__name__}({', '.join(given)})"
    raise Unwritable(f"a constraint has an argument of type {type(value).__name__}")


def _default(record: msgspec.Struct, name: str) -> Any:
    for each in msgspec.structs.fields(record):
        if each.name == name:
            made = each.default_factory
            return made() if callable(made) else each.default
    return None
