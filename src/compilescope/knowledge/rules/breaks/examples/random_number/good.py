import random
import torch

rng = random.Random(0)

def f(x, scale):
    return x * scale

scale = torch.tensor(rng.gauss(0.0, 1.0), dtype=torch.float64)
print(torch.compile(f, backend="eager")(torch.ones(3), scale))
