# ideal: none
# trap: an early return gives a list as well: the core would return where the function does not
import torch


@torch.compile(backend="eager")
def f(x):
    if x.shape[0] > 3:
        return (x * 0.5).tolist()
    y = x * 2
    return y.tolist()


print(f(torch.ones(3)), f(torch.ones(4)))
