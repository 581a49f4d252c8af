"""Shows a dataclass argument with a field that changes."""

import dataclasses

import torch

#: graphs 2


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    name: str


@torch.compile(backend="eager")  #: recompile 1 "batch.name" 'train' -> 'test'
def f(batch):
    return batch.x * (2 if batch.name == "train" else 3)


f(Batch(torch.ones(3), "train"))
f(Batch(torch.ones(3), "test"))
