#: note: a floor under the number
import torch


@torch.compile(backend="eager")
def rescale(reward):
    scale = max(reward.abs().max().item(), 1.0)
    return reward / scale


print(rescale(torch.tensor([0.5, -3.0])))
print(rescale(torch.tensor([0.5, -0.25])))
