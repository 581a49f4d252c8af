#: because: have gradients
import torch

weight = torch.ones(3, requires_grad=True)


@torch.compile(backend="eager")
def f(x):
    return x * weight


x = torch.ones(3)
f(x).sum().backward()
with torch.no_grad():
    f(x)
