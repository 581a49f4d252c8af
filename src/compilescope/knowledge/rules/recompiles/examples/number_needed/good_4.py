import torch

torch.manual_seed(0)

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * 2

for p in (0.1, 0.2, 0.3):
    print(f(torch.nn.functional.dropout(torch.ones(3), p)))
