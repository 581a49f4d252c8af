"""Adapters that work: one whose islands TorchInductor compiles, and one that only checks.

TorchInductor stands for a device's own compiler. The other is for a device that is not at hand:
graphs are checked as the mock backend does, and run eagerly.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from torch.fx import GraphModule

from compilescope.backends.adapters.base import AcceleratorAdapter
from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
from compilescope.backends.adapters.contract import CompilationResult
from compilescope.backends.checks import check_module
from compilescope.backends.mock.configuration import Configuration, Dims, configure
from compilescope.backends.mock.messages import say_default
from compilescope.base.errors import ToolError
from compilescope.base.settings import read_mock_settings
from compilescope.instrument.torchapi.inductor.graph_compiles import compile_with_inductor
from compilescope.record.device import Device


class InductorAdapter(AcceleratorAdapter):
    """`torch.compile(model, backend=InductorAdapter("npu-a"))`; without a device it takes all."""

    emulated = True

    def __init__(
        self, device: AcceleratorCapabilities | Device | str | Path | None = None, **settings: Any
    ) -> None:
        super().__init__(capabilities=device, **settings)

    def compile(self, gm: GraphModule, inputs: list[Any]) -> CompilationResult:
        run = compile_with_inductor(gm, inputs)
        return CompilationResult("success", run, metadata={"compiler": "inductor"})


class MockAdapter(AcceleratorAdapter):
    """`torch.compile(model, backend=MockAdapter("npu-a"))`: what would go onto that device?

    The mock backend refuses or takes a graph as a whole; this one cuts it up. It takes what the
    mock backend takes, and reads the same variables; without a device it is the generic one.
    """

    emulated = True

    def __init__(
        self,
        device: Device | str | os.PathLike[str] | None = None,
        *,
        strict: bool | None = None,
        alignment: int | None = None,
        alignment_dims: Dims | None = None,
        max_memory: int | str | None = None,
        max_peak_memory: int | str | None = None,
        **settings: Any,
    ) -> None:
        """`strict` raises where the device refuses something; by default MOCK_STRICT says so."""
        self._says_strict = strict
        self._asked: dict[str, Any] = {
            "device": device,
            "alignment": alignment,
            "alignment_dims": alignment_dims,
            "max_memory": max_memory,
            "max_peak_memory": max_peak_memory,
        }
        super().__init__(**settings)
        self._configuration()  # It says what is wrong with an argument.

    def get_capabilities(self) -> AcceleratorCapabilities:
        """Read anew for each graph, as the environment may have changed."""
        if self.capabilities is not None:
            return super().get_capabilities()
        configuration = self._configuration()
        say_default(configuration, type(self).__name__)
        device = configuration.device
        return AcceleratorCapabilities(configuration.name, device=device)

    def _configuration(self) -> Configuration:
        said = read_mock_settings().strict if self._says_strict is None else self._says_strict
        self.strict = type(self).strict if said is None else bool(said)
        return configure(**self._asked, repro=False)

    def compile(self, gm: GraphModule, inputs: list[Any]) -> CompilationResult:
        """Views that leave an island, such as those that are kept for the backward pass, look like
        results there: their layout was judged in the whole graph."""
        if not isinstance(gm, GraphModule):
            raise ToolError(
                f"MockAdapter.compile was called with {type(gm).__name__}, not a graph.",
                hint="Write torch.compile(model, backend=MockAdapter()).",
            )
        configuration = configure(device=self.get_capabilities().device, repro=False)
        checked = check_module(
            gm, configuration.constraints, inputs=inputs, device=configuration.name
        )
        leaving = {node.name for node in gm.graph.output_node().all_input_nodes}
        said = [
            f"{each.op}: {each.found}; {each.allowed}"
            for each in checked.errors
            if not (each.rule == "layout" and each.node in leaving)
        ]
        if said:
            return CompilationResult("failed", violations=said)
        words = [f"{each.op}: {each.found}" for each in checked.warnings]
        return CompilationResult("success", gm.forward, warnings=words)
