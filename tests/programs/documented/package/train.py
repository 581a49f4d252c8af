"""What the pages of the documentation call train.py: two graph breaks and a recompile."""

import sys

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 64)
        self.outer = nn.Linear(64, 10)

    def forward(self, x):
        hidden = self.inner(x).relu()
        if hidden.mean() > 0.5:
            hidden = hidden * 0.5
        scores = self.outer(hidden)
        print("largest score", scores.amax())
        return scores.log_softmax(-1)


torch.manual_seed(0)
model = torch.compile(Classifier(), backend="aot_eager")
for step in range(20):
    loss = -model(torch.randn(32 + step % 2, 64))[:, 0].mean()
print("loss", loss, sys.argv[1:])
