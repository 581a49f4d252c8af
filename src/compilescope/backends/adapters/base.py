"""The adapter: subclass it, write `compile`, and it is a backend for torch.compile.

It checks every graph, gives the device what the device takes, leaves the rest to the host, and
keeps a report of both. Nothing falls back in silence.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import GraphModule

from compilescope.backends.adapters.compilation import AdapterCompilation
from compilescope.backends.adapters.contract import IslandCompiler
from compilescope.backends.adapters.island import AdapterError, check_live
from compilescope.backends.adapters.ledger import Ledger
from compilescope.backends.adapters.verification import AdapterVerification, verify
from compilescope.backends.checks import ConstraintViolation, check_portable
from compilescope.backends.islands.records import AdapterReport
from compilescope.errors import ToolError
from compilescope.model.graph import Graph


class AcceleratorAdapter(IslandCompiler):
    """A device behind torch.compile: `torch.compile(model, backend=MyAdapter())`.

    Settings are attributes of the class, or arguments of its constructor.
    """

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

    def verify(self, model: Callable[..., Any], *args: Any, **kwargs: Any) -> AdapterVerification:
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
        return AdapterCompilation(self, capabilities, self._log).run(gm, inputs)

    @property
    def _log(self) -> Ledger:
        # A subclass need not call our constructor.
        ledger: Ledger = self.__dict__.setdefault("_ledger", Ledger())
        return ledger
