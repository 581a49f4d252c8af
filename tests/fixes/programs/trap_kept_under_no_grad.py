# ideal: none
# trap: handed on as it is, the tensor keeps its history; picked under no_grad it would lose it
import torch


@torch.no_grad()
def clipped(x):
    if x.max() > 1:
        return x.clamp(max=1.0)
    return x


run = torch.compile(clipped, backend="eager")
for top in (0.5, 3.0):
    x = torch.tensor([0.1, top], requires_grad=True)
    print(run(x).requires_grad)
