# ideal: masked-reduction
"""A mean over the positive entries, by their number."""

import torch


class PositiveMean(torch.nn.Module):
    def forward(self, x):
        positive = x[x > 0]
        return (x - positive.sum() / len(positive)) * positive.numel()


layer = torch.compile(PositiveMean(), backend="eager")
print(layer(torch.tensor([1.0, -2.0, 3.0])).tolist())
print(layer(torch.tensor([4.0, -2.0, 0.5])).tolist())
