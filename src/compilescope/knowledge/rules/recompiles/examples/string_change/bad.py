import torch

@torch.compile(backend="eager")
def f(x, mode):
    return x.relu() if mode == "relu" else x.tanh()

for mode in ("relu", "tanh"):
    print(f(torch.ones(3), mode))
