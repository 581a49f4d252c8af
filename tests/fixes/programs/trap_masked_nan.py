# ideal: any
# trap: NaN outside of the mask times zero is NaN, also in the gradient
"""A loss over the entries that are there; the others are NaN."""

import torch


def loss(pred, target):
    there = ~torch.isnan(target)
    return ((pred[there] - target[there]) ** 2).sum()


run = torch.compile(loss, backend="aot_eager")
pred = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
target = torch.tensor([0.5, float("nan"), 2.0])
value = run(pred, target)
value.backward()
print(value.item(), pred.grad.tolist())
