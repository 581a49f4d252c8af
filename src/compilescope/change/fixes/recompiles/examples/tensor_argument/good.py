import torch


@torch.compile(backend="eager", dynamic=False)
def decay(x, rate):
    return x * (1 - rate)


for step in range(3):
    decay(torch.ones(3), torch.tensor(0.5 / (step + 1), dtype=torch.float64))
