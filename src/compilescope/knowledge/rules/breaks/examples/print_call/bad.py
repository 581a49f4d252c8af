import torch

def f(x):
    y = x + 1
    print("step", y)
    return y * 2

print(torch.compile(f, backend="eager")(torch.ones(3)))
