import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

x = torch.ones(3)
torch._dynamo.mark_dynamic(x, 0, min=2, max=16)
print(f(x))
print(f(torch.ones(9)))
