"""Shows a list indexed by a captured scalar, where tracing fails even without fullgraph."""

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

#: graphs 0 #: with tracing/symbol-index-breaks graphs 2


@torch.compile(backend="eager")
def f(x):
    n = x.sum().item()
    y = x * 2
    # fmt: off
    factor = [1, 2, 3, 4][n]  #: failure GuardOnDataDependentSymNode "[1, 2" Could not extract specialized integer from data-dependent expression #: with tracing/symbol-index-breaks none #: with tracing/symbol-index-breaks break "[1, 2" Could not extract specialized integer from data-dependent expression #: with tracing/symbol-index-breaks category scalar-extraction
    # fmt: on
    return y * factor


with torch._dynamo.config.patch(capture_scalar_outputs=True):
    try:
        f(torch.tensor([1, 2]))
    except GuardOnDataDependentSymNode:
        pass
