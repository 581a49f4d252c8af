# ideal: capture-shapes
"""How often each token occurs."""

import torch
from torch import nn


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, tokens):
        values, counts = torch.unique(tokens, return_counts=True)
        return (values * counts).sum() * self.weight


counter = Counter()
compiled = torch.compile(counter, backend="eager")
for tokens in ([1, 1, 2], [3, 3, 3], [1, 2, 3]):
    print(compiled(torch.tensor(tokens)).item())
