"""The base class behind every adapter: its settings, and the methods that a user's subclass writes.

The modules that check, cut and run graphs know this class only. `AcceleratorAdapter` subclasses it
and calls those modules; if they imported it in turn, that would be an import circle.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from torch.fx import GraphModule

from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
from compilescope.base.errors import ToolError
from compilescope.record.device import Device

_CHOICES: dict[str, tuple[str, ...]] = {
    "fallback": ("eager", "inductor", "refuse"),
    "level": ("aten", "dynamo"),
    "random": ("host", "device"),
    "unsure": ("host", "device"),
    "on_error": ("raise", "fallback"),
}


class IslandCompiler(abc.ABC):
    """Compiles islands for a device. Settings are attributes of the class, or arguments of its
    constructor."""

    capabilities: AcceleratorCapabilities | Device | str | Path | None = None
    """What the device takes, or the name of a device file. None: everything."""
    fallback: Literal["eager", "inductor", "refuse"] = "eager"
    """What runs the rest of the graph; `refuse` raises instead."""
    strict: bool = False
    """Raise where the device refuses an op, as the mock backends do."""
    level: Literal["aten", "dynamo"] = "aten"
    """The graphs that are cut: AOTAutograd's, or Dynamo's own (for inference alone)."""
    min_island_ops: int = 1
    """Islands with fewer ops that compute stay on the host."""
    random: Literal["host", "device"] = "host"
    """Where random numbers are drawn. On the host they are those of eager mode."""
    unsure: Literal["host", "device"] = "host"
    """Where nodes go of which a constraint cannot tell."""
    on_error: Literal["raise", "fallback"] = "raise"
    """What an exception in `compile` does."""
    emulated: bool = False
    """Its islands run on the host by design, in place of a device."""
    checked: bool = False
    """Look for silent wrongness in every call. Slow: each island runs twice."""
    tolerance: float | None = None
    """How far results may be off in checking mode, relative to the largest; None: by dtype."""
    decompositions: Mapping[Any, Callable[..., Any]] | None = None
    """Operators to take apart before anything is checked: `torch.export.default_decompositions()`,
    for one."""

    def __new__(cls, *args: Any, **kwargs: Any) -> IslandCompiler:
        adapter = super().__new__(cls)
        # What torch, and a record of the compilation, call a backend.
        adapter.__dict__["__name__"] = cls.__name__
        return adapter

    def __init__(self, **settings: Any) -> None:
        known = setting_names()
        for name, value in settings.items():
            if name not in known:
                raise TypeError(
                    f"{type(self).__name__} has no setting {name!r}; the settings are "
                    f"{', '.join(known)}"
                )
            setattr(self, name, value)
        self._check_settings()

    @abc.abstractmethod
    def compile(self, gm: GraphModule, inputs: list[Any]) -> CompilationResult | Callable[..., Any]:
        """What runs the graph on the device: called with the graph's inputs, it gives its outputs.

        `gm` is one island, of ATen operators that change nothing in place. `inputs` have shapes and
        dtypes but no numbers.
        """

    def get_capabilities(self) -> AcceleratorCapabilities:
        """What the device takes; by default, what the attribute `capabilities` says."""
        said = self.capabilities
        if isinstance(said, (str, Path, Device)):
            return AcceleratorCapabilities.from_device(said)
        return said if said is not None else AcceleratorCapabilities(type(self).__name__)

    def lower(self, gm: GraphModule, inputs: list[Any]) -> GraphModule:
        """The island as `compile` wants it. Other graphs than the one given are checked again."""
        return gm

    def _check_settings(self) -> None:
        """Raises ValueError for a setting that means nothing."""
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{type(self).__name__}.{name} is {getattr(self, name)!r}; "
                    f"it must be one of {', '.join(allowed)}"
                )
        if type(self.min_island_ops) is not int or self.min_island_ops < 1:
            raise ValueError(
                f"{type(self).__name__}.min_island_ops is {self.min_island_ops!r}; "
                "it must be a whole number of at least 1"
            )

    def _read_capabilities(self) -> AcceleratorCapabilities:
        """`get_capabilities`, which is the user's: it may raise, or return anything."""
        name = type(self).__name__
        try:
            found = self.get_capabilities()
        except ToolError:
            raise
        except Exception as error:  # The border to a plugin.
            raise ToolError(
                f"{name}.get_capabilities() failed with {type(error).__name__}: {error}",
                hint="Nothing is known about the device until this works.",
            ) from error
        if not isinstance(found, AcceleratorCapabilities):
            raise TypeError(
                f"{name}.get_capabilities() returned {type(found).__name__}; it must return "
                "AcceleratorCapabilities, built in code or with "
                "AcceleratorCapabilities.from_device()"
            )
        return found


def setting_names() -> list[str]:
    """Of the settings that every adapter has."""
    return [name for name in IslandCompiler.__annotations__ if not name.startswith("_")]


# What `compile` of a user's adapter returns for one island: how it went, and what runs it.
#
# A result that makes no sense is refused when it is made, in the adapter's own stack.


class CompilationStatus(str, Enum):
    """How it went. The words themselves do as well: `CompilationResult("failed")`."""

    SUCCESS = "success"
    """`compiled_fn` runs the whole island on the device."""
    PARTIAL = "partial"
    """`compiled_fn` runs it, a part of it elsewhere: `warnings` should say which."""
    FALLBACK = "fallback"
    """`compiled_fn` or `fallback_fn` runs it, on the host."""
    FAILED = "failed"
    """`fallback_fn` runs it; without one, the adapter's `fallback` does."""


class CompilationResult:
    """One island, compiled or not."""

    def __init__(
        self,
        status: CompilationStatus | str | None = None,
        compiled_fn: Callable[..., Any] | None = None,
        violations: Iterable[object] = (),
        warnings: Iterable[str] = (),
        *,
        metadata: Mapping[str, Any] | None = None,
        fallback_fn: Callable[..., Any] | None = None,
    ) -> None:
        """Without a `status` it is a success if there is a `compiled_fn`, else a failure.

        `violations` are what the compiler has against the island, in its own words.
        """
        if status is None:
            status = "failed" if compiled_fn is None else "success"
        try:
            self.status = CompilationStatus(status)
        except ValueError:
            known = ", ".join(each.value for each in CompilationStatus)
            raise ValueError(f"status is {status!r}; it must be one of {known}") from None
        for name, function in (("compiled_fn", compiled_fn), ("fallback_fn", fallback_fn)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a function, not {type(function).__name__}")
        for name, words in (("violations", violations), ("warnings", warnings)):
            if isinstance(words, str):
                raise TypeError(f"{name} must be a list, not the string {words!r}")
        self.compiled_fn = compiled_fn
        self.violations = tuple(violations)
        self.warnings = tuple(str(warning) for warning in warnings)
        self.metadata = dict(metadata or {})
        self.fallback_fn = fallback_fn
        if self.success and compiled_fn is None:
            raise ValueError(
                "status is success, but there is no compiled_fn: give one, or use status='failed'"
            )

    @property
    def success(self) -> bool:
        return self.status is CompilationStatus.SUCCESS

    def get_callable(self) -> Callable[..., Any] | None:
        """What runs the island; None: the adapter's fallback does."""
        # By identity: a module with a length may be false.
        if self.status is CompilationStatus.FAILED or self.compiled_fn is None:
            return self.fallback_fn
        return self.compiled_fn

    @property
    def why(self) -> str:
        """In the adapter's own words, why it is less than a success."""
        return "; ".join(map(str, (*self.violations, *self.warnings)))

    def __repr__(self) -> str:
        return f"<CompilationResult {self.status.value}>"
