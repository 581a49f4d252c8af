"""What the compiled calls of a step returned, for programs that leave nothing of it in a variable:
one that only times its model, say.

A call is known by its place among the calls of its function in the step, so that versions that
compile other functions have nothing to compare here.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from compilescope.change.tune.step_place import RETURNED
from compilescope.instrument.torchapi.graphs.values import leaves_of
from compilescope.instrument.torchapi.regions import CompiledRegion, Regions

_MOST_CALLS = 16
"""Of one function in one step. Chosen: the blocks of a model, or its micro-batches."""


class CallResults:
    """Copies them as they are returned: a CUDA graph may overwrite them later."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._kept: dict[str, torch.Tensor] = {}
        self._regions = Regions(self._on_call)
        self._regions.install()

    def take(self) -> dict[str, torch.Tensor]:
        """Those since it was last asked."""
        kept, self._kept = self._kept, {}
        self._calls.clear()
        return kept

    def _on_call(self, region: CompiledRegion, args: Any, kwargs: Any) -> Any:
        with self._regions.calling("compiled"):
            result = region.compiled(*args, **kwargs)
        self._calls[region.name] += 1
        number = self._calls[region.name]
        if number <= _MOST_CALLS:
            for place, tensor in enumerate(leaves_of(result)):
                if type(tensor) is torch.Tensor and tensor.layout is torch.strided:
                    name = f"what {region.name}{RETURNED}{number}, [{place}]"
                    with torch.no_grad():
                        self._kept[name] = tensor.detach().clone()
        return result
