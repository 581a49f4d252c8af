import torch

@torch.compile(backend="eager")
def f(x):
    rows = x[x.sum(1) > 0]
    print("rows")
    return rows.sin()

for count in (3, 5, 1):
    print(f(torch.tensor([[1.0]] * count + [[-1.0]] * (8 - count))))
