import torch


@torch.compile(backend="eager")
def rescale(reward):
    scale = reward.abs().max().detach().clamp(min=1.0)
    return reward / scale


print(rescale(torch.tensor([0.5, -3.0])))
print(rescale(torch.tensor([0.5, -0.25])))
