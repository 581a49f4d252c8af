#: because: number is needed
import torch


@torch.compile(backend="eager")
def rescale(reward):
    scale = max(1.0, reward.abs().max().item())
    return reward / scale


print(rescale(torch.tensor([0.5, -3.0])))
