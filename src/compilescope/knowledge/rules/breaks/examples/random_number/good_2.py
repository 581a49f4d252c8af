import random
import torch

random.seed(0)

def f(x, scale):
    return x * scale

scale = torch.tensor(random.random(), dtype=torch.float64)
print(torch.compile(f, backend="eager")(torch.ones(3), scale))
