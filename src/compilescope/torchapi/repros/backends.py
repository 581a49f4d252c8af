"""The backend behind Dynamo's wrappers, and the source by which a script names it.

A registered name is enough where torch or an installed package registers it; else the script brings
the function's definition.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

from compilescope.torchapi.repros.constants import Unwritable
from compilescope.torchapi.repros.definitions import Definitions


@dataclass(frozen=True)
class UsedBackend:
    """What torch.compile was told to compile with."""

    function: Any
    name: str
    """For people; where `is_named`, also for torch.compile."""
    is_named: bool
    """torch, or a package, registers it under this name."""
    options: tuple[str, ...] = ()
    """Further arguments of torch.compile, as source."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The same as objects."""


def used_backend(compiler: Any, *, as_source: bool = True) -> UsedBackend:
    """`compiler` is a name, a function, or what Dynamo made of one. Unwritable where arguments are
    wanted `as_source` and have none."""
    options: list[str] = []
    arguments: dict[str, Any] = {}
    seen: set[int] = set()
    while id(compiler) not in seen:
        seen.add(id(compiler))
        inner = getattr(compiler, "_torchdynamo_orig_backend", None)
        inner = inner or getattr(compiler, "_torchdynamo_orig_callable", None)
        if inner is None and type(compiler).__name__ == "_TorchCompileWrapper":
            inner = getattr(compiler, "compiler_fn", None)
            for name, value in getattr(compiler, "kwargs", {}).items():
                options += [f"{name}={_plain(value)}"] if as_source else []
                arguments[name] = value
        if inner is None and isinstance(compiler, functools.partial) and not compiler.args:
            inner = compiler.func if not compiler.keywords else None
        compiler = compiler if inner is None else inner
    if isinstance(compiler, str):
        return UsedBackend(_registered(compiler), compiler, _is_public(compiler), tuple(options))
    if type(compiler).__name__ == "_TorchCompileInductorWrapper":
        config = getattr(compiler, "config", {})
        options += [f"options={_plain(config)}"] if config and as_source else []
        return UsedBackend(compiler, "inductor", True, tuple(options))
    name = _registered_name(compiler) or getattr(compiler, "__name__", type(compiler).__name__)
    return UsedBackend(compiler, name, _is_public(name, compiler), tuple(options), arguments)


def backend_definitions(used: UsedBackend) -> tuple[str, Definitions]:
    """The expression that names it, and what must be said first."""
    code = Definitions()
    if used.is_named:
        return repr(used.name), code
    return code.bring(used.function), code


def _registry() -> Any:
    from torch._dynamo.backends import registry

    return registry


def _registered(name: str) -> Any:
    return _registry().lookup_backend(name)


def _registered_name(function: Any) -> str:
    known = getattr(_registry(), "_COMPILER_FNS", {})
    return next((name for name, each in known.items() if each is function), "")


def _is_public(name: str, function: Any = None) -> bool:
    """Is the name all that another process needs?"""
    registry = _registry()
    if name not in registry.list_backends(exclude_tags=None):
        return False
    known = registry.lookup_backend(name)
    if function is not None and known is not function:
        return False
    home = str(getattr(known, "__module__", None) or type(known).__module__)
    return home.split(".")[0] == "torch" or _is_installed(name)


def _is_installed(name: str) -> bool:
    """torch forgets that a backend is a package's as soon as it is looked up (2.13)."""
    return any(entry.name == name for entry in entry_points(group="torch_dynamo_backends"))


def _plain(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        words = ", ".join(_plain(item) for item in value)
        return f"[{words}]" if isinstance(value, list) else f"({words},)" if value else "()"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_plain(k)}: {_plain(v)}" for k, v in value.items()) + "}"
    raise Unwritable(f"the backend has an argument of type {type(value).__name__}")
