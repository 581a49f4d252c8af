# ideal: where-for-if
# A gate that doubles or shifts, by the sum of what comes in.
import torch


def gate(x):
    y = x.sin()
    if y.sum() > 0:
        y = y * 2
    else:
        y = y - 1
    return y + 1


compiled = torch.compile(gate, backend="eager")
for sign in (1.0, -1.0):
    print(compiled(sign * torch.arange(4.0)).sum().item())
