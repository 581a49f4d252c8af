# ideal: masked-reduction
"""A loss over the pixels that have a label; the others are NaN."""

import torch


def masked_loss(pred, target):
    known = target[~torch.isnan(target)]
    return known.sum() / 3 + pred[pred > 0].mean()


compiled = torch.compile(masked_loss, backend="aot_eager")
pred = torch.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
target = torch.tensor([[1.0, float("nan")], [float("nan"), 2.0]])
loss = compiled(pred, target)
loss.backward()
print(round(loss.item(), 5), pred.grad.tolist())
