"""What identifies a violation, so that it is recognised again in a smaller graph or a new process;
and the device that it is one for, as Python source.

And how it is told in the script that shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from compilescope.backends.checks import ConstraintViolation
from compilescope.backends.device_files import shipped_devices
from compilescope.backends.mock.backend import CheckedModule
from compilescope.backends.mock.configuration import Configuration
from compilescope.backends.mock.messages import place
from compilescope.change.minify.graph.record import BackendSource, Setting, Shown
from compilescope.instrument.torchapi.compilation.current import changed_settings
from compilescope.instrument.torchapi.repros.definitions import Definitions, Unwritable
from compilescope.instrument.torchapi.repros.graph_writer import GraphAndInputs
from compilescope.knowledge.rules.hardware.constraint import Constraint
from compilescope.record.device import Device

_MOST_NAMED = 10
"""Violations that are listed. Chosen: the rest is counted."""
_SYMBOL = re.compile(r"\b[suz]\d+\b")
_NUMBER = re.compile(r"(?<!dimension )\b\d+(\.\d+)?\b")


class Fact(msgspec.Struct, frozen=True, array_like=True, order=True):
    """What must come again for a repro to be one."""

    rule: str
    stage: str
    op: str
    found: str


def facts(found: Iterable[ConstraintViolation]) -> set[Fact]:
    """Violations without what differs from script to script: lines, names of inputs, of symbols."""
    return {
        Fact(
            each.rule,
            each.stage,
            "input" if each.op.startswith(("input ", "parameter ")) else each.op,
            _SYMBOL.sub("s", each.found),
        )
        for each in found
    }


def loosely(fact: tuple[str, ...]) -> tuple[str, ...]:
    """Without sizes: a smaller graph breaks the same rule with smaller tensors."""
    rule, stage, op, found = fact
    return rule, stage, op, re.sub(r"#(, #)+", "#", _NUMBER.sub("#", found))


def loosened(found: Iterable[Fact]) -> set[tuple[str, ...]]:
    return {loosely(msgspec.structs.astuple(fact)) for fact in found}


def setting_of(judged: CheckedModule, written: GraphAndInputs) -> Setting:
    """How its graph is compiled. Unwritable where a constraint has no source of its own."""
    return Setting(
        backend=mock_source(judged.backend, judged.configuration),
        options=("dynamic=True",) if written.loose else (),
        contexts=judged.contexts,
        settings=tuple(changed_settings()),
        model=judged.checked[0].model,
    )


def mock_source(backend: str, configuration: Configuration) -> BackendSource:
    """A mock backend by the name that it has in `compilescope`."""
    chosen = _configuration_code(configuration)
    arguments = ", ".join([*chosen.arguments, "strict=True", "repro=False"])
    return BackendSource(
        expression=f"compilescope.{backend}({arguments})",
        name=backend,
        imports=("import compilescope", *(line for line in chosen.imports.values() if line)),
        folders=tuple(chosen.folders),
        definitions=tuple(chosen.definitions),
    )


def shown(judged: CheckedModule, wanted: Iterable[Fact], also: Iterable[Fact] = ()) -> Shown:
    """`wanted` must come again, `also` may."""
    found = [each for graph in judged.checked for each in graph.errors]
    first = judged.checked[0]
    of = f" of {first.model}" if first.model else ""
    lines = [
        f"- {place(each)}: {each.rule}, {each.op}: {each.found}; allowed: {each.allowed}"
        for each in found[:_MOST_NAMED]
    ]
    if len(found) > _MOST_NAMED:
        lines.append(f"- and {len(found) - _MOST_NAMED} more")
    expected = sorted(wanted)
    return Shown(
        kind="violation",
        expected=tuple((fact.rule, fact.stage, fact.op, fact.found) for fact in expected),
        title=f"{first.device} does not support this graph{of}.",
        lines=tuple(lines),
        also=tuple((fact.rule, fact.stage, fact.op, fact.found) for fact in sorted(also)),
    )


@dataclass
class ConfigurationCode(Definitions):
    """The source of a backend's configuration."""

    arguments: list[str] = field(default_factory=list)
    """Keyword arguments of the backend."""


def _configuration_code(configuration: Configuration) -> ConfigurationCode:
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
