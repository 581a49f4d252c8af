import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(4)))
x = torch.ones(4)
torch._dynamo.mark_dynamic(x, 0)
print(f(x))
