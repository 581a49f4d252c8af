# ideal: any
# trap: the gradient of a distance is infinite at zero, and `where` would let it through
import torch


def length(x):
    square = (x * x).sum()
    return square.sqrt() if square > 0 else square * 1


f = torch.compile(length, backend="aot_eager")
for k in (0.0, 3.0):
    x = torch.full((2,), k, requires_grad=True)
    f(x).backward()
    print(x.grad.tolist())
