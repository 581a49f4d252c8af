import torch

def one(x):
    return x + 1

def two(x):
    return x * 2

print(torch.compile(lambda x: one(x), backend="eager")(torch.ones(3)))
print(torch.compile(lambda x: two(x), backend="eager")(torch.ones(3)))
