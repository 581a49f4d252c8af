#: because: `error.mean\(\)` needs `error`
import torch


def accuracy(y, target):
    y.clamp_(-1, 1)
    return (y > target).float().mean()


@torch.compile(backend="eager")
def loss(y, target, kept):
    y = y * 2
    score = accuracy(y, target).item()
    kept.append(score)
    error = (y - target).pow(2)
    return error.mean()


kept = []
for _ in range(3):
    loss(torch.ones(2, 3), torch.zeros(2, 3), kept)
