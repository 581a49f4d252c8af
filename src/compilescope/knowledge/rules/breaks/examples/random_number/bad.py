import random
import torch

rng = random.Random(0)

def f(x):
    return x * rng.gauss(0.0, 1.0)

print(torch.compile(f, backend="eager")(torch.ones(3)))
