# ideal: any
# trap: the number has no gradient, and the tensor in its place must have none either
"""Weighs by a running level, through which no gradient must flow."""

import torch

level = torch.nn.Parameter(torch.tensor(2.0))


def weighted(x):
    share = (x * level).mean().item()
    return (x * level * share).sum()


run = torch.compile(weighted, backend="aot_eager")
x = torch.tensor([1.0, 2.0])
for _ in range(2):
    run(x).backward()
print(round(level.grad.item(), 5))
