# ideal: any
# trap: the second condition may hold where the first one does too, and the sum is zero
import torch


@torch.compile(backend="aot_eager")
def loss_of(x, weights, on):
    total = weights.sum()
    loss = (x * weights).sum()
    if on.sum() == 0:
        loss = loss * 2
    elif weights.min() >= 0:
        loss = loss / total
    return loss


for seen, weight in ((1, 1), (0, 0), (1, -1), (0, 1)):
    x = torch.ones(3, requires_grad=True)
    loss_of(x, torch.full((3,), float(weight)), torch.full((2,), float(seen))).backward()
    print(x.grad.tolist())
