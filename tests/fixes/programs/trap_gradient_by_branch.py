# ideal: value-read-first
# trap: only one side requires a gradient; a pick of both would always require one
import torch

weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))


def scaled(x):
    if x.sum() > 0:
        x = x * weight
    return x + 1


run = torch.compile(scaled, backend="eager")
for sign in (1.0, -1.0):
    out = run(torch.full((2,), sign))
    print(out.tolist(), out.requires_grad)
