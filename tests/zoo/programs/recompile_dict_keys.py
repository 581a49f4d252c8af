"""Shows a dict argument whose keys change."""

import torch

#: graphs 2


@torch.compile(backend="eager")  #: recompile 1 "batch.keys()[0]" 'a' -> 'b'
def f(batch):
    return sum(value * 2 for value in batch.values())


f({"a": torch.ones(3)})
f({"b": torch.ones(3)})
