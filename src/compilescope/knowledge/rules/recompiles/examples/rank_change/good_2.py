import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

for x in (torch.ones(6, 3), torch.ones(2, 3, 3)):
    print(f(x.reshape(-1, x.shape[-1])).reshape(x.shape))
