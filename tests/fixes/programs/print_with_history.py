# ideal: print-after-graph
"""Prints a tensor that has a history, which shows in its text."""

import torch

weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))


@torch.compile(backend="aot_eager")
def model(x):
    hidden = x * weight
    print("hidden:", hidden)
    return hidden.sum()


for scale in (1.0, 3.0):
    weight.grad = None
    model(torch.ones(2) * scale).backward()
    print(weight.grad.tolist())
