import torch

def f(x):
    return x * 2

for backend in ("eager", "aot_eager"):
    print(torch.compile(f, backend=backend)(torch.ones(3)))
