import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(3)))
with torch.inference_mode():
    x = torch.ones(3)
print(f(x.clone()))
