# ideal: none
# trap: the function itself catches what the check raises
import torch


def checked(x):
    try:
        if x.min() < 0:
            raise RuntimeError("negative")
        y = x * 2
    except RuntimeError:
        y = x * 0
    return y + 1


g = torch.compile(checked, backend="eager")
for k in (1.0, -1.0):
    print(g(torch.full((2,), k)).tolist())
