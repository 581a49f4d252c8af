"""A device that is not at hand: islands are checked as the mock backend does, and run eagerly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.fx import GraphModule

from compilescope.backends.adapters.base import AcceleratorAdapter
from compilescope.backends.adapters.results import CompilationResult
from compilescope.backends.checking import check_module
from compilescope.backends.mock.configuration import configure
from compilescope.model.device import Device


class MockAdapter(AcceleratorAdapter):
    """`torch.compile(model, backend=MockAdapter("npu-a"))`: what would go onto that device?

    The mock backend refuses or takes a graph as a whole; this one cuts it up.
    """

    emulated = True

    def __init__(self, device: Device | str | Path, **settings: Any) -> None:
        super().__init__(capabilities=device, **settings)

    def compile(self, gm: GraphModule, inputs: list[Any]) -> CompilationResult:
        configuration = configure(device=self.get_capabilities().device, repro=False)
        checked = check_module(
            gm, configuration.constraints, inputs=inputs, device=configuration.name
        )
        if checked.errors:
            said = [f"{each.op}: {each.found}; {each.allowed}" for each in checked.errors]
            return CompilationResult("failed", violations=said)
        words = [f"{each.op}: {each.found}" for each in checked.warnings]
        return CompilationResult("success", gm.forward, warnings=words)
