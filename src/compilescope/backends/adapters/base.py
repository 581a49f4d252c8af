"""The adapter: subclass it, write `compile`, and it is a backend for torch.compile.

It checks every graph, gives the device what the device takes, leaves the rest to the host, and
keeps a report of both. Nothing falls back in silence.
"""

from __future__ import annotations

import abc
import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from torch.fx import GraphModule

from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
from compilescope.backends.adapters.compilation import Compilation, check_live
from compilescope.backends.adapters.compiling import AdapterError
from compilescope.backends.adapters.ledger import Ledger
from compilescope.backends.adapters.results import CompilationResult
from compilescope.backends.adapters.verification import Verification, verify
from compilescope.backends.checking import ConstraintViolation, check_portable
from compilescope.backends.islands.records import AdapterReport
from compilescope.errors import ToolError
from compilescope.model.device import Device
from compilescope.model.graph import Graph

_CHOICES: dict[str, tuple[str, ...]] = {
    "fallback": ("eager", "inductor", "refuse"),
    "level": ("aten", "dynamo"),
    "random": ("host", "device"),
    "unsure": ("host", "device"),
    "on_error": ("raise", "fallback"),
}


class AcceleratorAdapter(abc.ABC):
    """A device behind torch.compile: `torch.compile(model, backend=MyAdapter())`.

    Settings are attributes of the class, or arguments of its constructor.
    """

    capabilities: AcceleratorCapabilities | Device | str | Path | None = None
    """What the device takes, or the name of a device file. None: everything."""
    fallback: Literal["eager", "inductor", "refuse"] = "eager"
    """What runs the rest of the graph; `refuse` raises instead."""
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

    def __new__(cls, *args: Any, **kwargs: Any) -> AcceleratorAdapter:
        adapter = super().__new__(cls)
        # What torch, and a record of the compilation, call a backend.
        adapter.__dict__["__name__"] = cls.__name__
        return adapter

    def __init__(self, **settings: Any) -> None:
        known = [name for name in AcceleratorAdapter.__annotations__ if not name.startswith("_")]
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

    def check(
        self, graph: GraphModule | Graph, inputs: Sequence[Any] | None = None
    ) -> list[ConstraintViolation]:
        """What the device has against a graph, live or portable, without compiling anything."""
        capabilities = self._read_capabilities()
        if isinstance(graph, Graph):
            constraints = capabilities.portable_constraints
            return list(check_portable(graph, constraints, "dynamo", capabilities.name).found)
        if not isinstance(graph, GraphModule):
            raise TypeError(f"check() takes a GraphModule or a Graph, not {type(graph).__name__}")
        return list(check_live(graph, capabilities, inputs).found)

    def check_constraints(
        self, graph: GraphModule | Graph, inputs: Sequence[Any] | None = None
    ) -> list[ConstraintViolation]:
        """`check`, under its older name."""
        return self.check(graph, inputs)

    def verify(self, model: Callable[..., Any], *args: Any, **kwargs: Any) -> Verification:
        """Compile a model with this adapter, run it, and look for silent wrongness.

        The model runs with these arguments and with changed ones, and backward where something
        asks for gradients. Neither the model nor this adapter's report is touched.
        """
        examiner = copy.copy(self)
        examiner.__dict__["_ledger"] = Ledger()
        examiner.checked = True
        return verify(examiner, model, args, kwargs)

    @property
    def report(self) -> AdapterReport:
        """What became of the graphs so far."""
        return self._log.report(self._read_capabilities().name, type(self).__name__)

    def forget(self) -> None:
        """Begin the report anew."""
        self.__dict__["_ledger"] = Ledger()

    def __call__(
        self, gm: GraphModule, inputs: Sequence[Any], **options: Any
    ) -> Callable[..., Any]:
        """The backend, as torch.compile calls it."""
        name = type(self).__name__
        if any(options.values()):
            raise AdapterError(
                name,
                f"{name} does not accept mode or options from torch.compile.",
                f"Set them on the adapter: {name}(fallback='inductor').",
            )
        try:
            self._check_settings()
            capabilities = self._read_capabilities()
        except (ToolError, TypeError, ValueError) as error:
            hint = error.hint if isinstance(error, ToolError) else ""
            raise AdapterError(name, str(error), hint) from error
        return Compilation(self, capabilities, self._log).run(gm, inputs)

    @property
    def _log(self) -> Ledger:
        # A subclass need not call our constructor.
        ledger: Ledger = self.__dict__.setdefault("_ledger", Ledger())
        return ledger

    def _check_settings(self) -> None:
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
