import torch

def f(x, n):
    for _ in range(int(n)):
        x = x * 2
    return x

print(torch.compile(f, backend="eager")(torch.ones(3), torch.tensor(2)))
