"""Does a backend draw the random numbers that eager mode would draw from the same state?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, GraphModule

from compilescope.torchapi.bisecting.ambient import RandomState, kept_random_state

_COUNT = 64


def draws_as_eager(backend: Callable[..., Any], device: torch.device) -> bool | None:
    """None where it cannot tell. Costs one compilation."""
    graph = Graph()
    value = graph.placeholder("value")
    graph.output((graph.call_function(torch.rand_like, (value,)),))
    module = GraphModule(torch.nn.Module(), graph)
    example = torch.zeros(_COUNT, device=device)
    with kept_random_state(), torch.no_grad():
        state = RandomState.now()
        wanted = torch.rand_like(example)
        state.restore()
        try:
            function = backend(module, [example])
            state.restore()
            [given] = function(example)
        except Exception:  # The border to the backend.
            return None
    return bool(torch.equal(wanted, given))
