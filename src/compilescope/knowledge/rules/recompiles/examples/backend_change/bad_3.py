import torch

def f(x):
    return x * 2

for dynamic in (True, False):
    print(torch.compile(f, backend="eager", dynamic=dynamic)(torch.ones(3)))
