#: because: the default dtype anyway
import torch


@torch.compile(backend="eager", dynamic=False)
def loss(error, beta):
    return beta * error.mean()


for step in range(3):
    print(loss(torch.ones(3), step / 3).dtype)
