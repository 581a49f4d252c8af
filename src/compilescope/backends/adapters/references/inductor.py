"""Islands that really are compiled: by TorchInductor, which stands for a device's own compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.fx import GraphModule

from compilescope.backends.adapters.base import AcceleratorAdapter
from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
from compilescope.backends.adapters.results import CompilationResult
from compilescope.model.device import Device
from compilescope.torchapi.inductor.graph_compiles import compile_with_inductor


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
