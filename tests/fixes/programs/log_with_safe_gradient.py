# ideal: where-for-if
# trap: torch.where of both sides gives NaN gradients for the side that is not taken
import torch


def energy(x):
    if x.min() > 0:
        y = x.log()
    else:
        y = x * 0.5
    return y.sum()


f = torch.compile(energy, backend="aot_eager")
for start in (1.0, -1.0, 0.0):
    x = (torch.arange(3.0) + start).requires_grad_()
    f(x).backward()
    print(x.grad.tolist())
