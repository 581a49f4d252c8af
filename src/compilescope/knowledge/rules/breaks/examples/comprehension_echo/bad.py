import torch

def f(x, names):
    for _ in range(2):
        print("loop")
    table = {name: x for name in names.items()}
    return x + 1

torch.compile(f, backend="eager")(torch.ones(3), {"a": 1})
