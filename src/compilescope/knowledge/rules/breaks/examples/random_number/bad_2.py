import random
import torch

random.seed(0)

def f(x):
    return x * random.random()

print(torch.compile(f, backend="eager")(torch.ones(3)))
