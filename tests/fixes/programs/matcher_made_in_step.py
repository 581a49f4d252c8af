# ideal: grad-mode-inside
"""A loss that is made in the step, with a matcher that runs without gradients."""

import torch
from torch import nn


class Matcher(nn.Module):
    @torch.no_grad()
    def forward(self, scores):
        return scores.argmax(-1)


class MatchedLoss(nn.Module):
    def __init__(self, matcher):
        super().__init__()
        self.matcher = matcher

    def forward(self, scores):
        best = self.matcher(scores)
        return -scores.log_softmax(-1).gather(-1, best[:, None]).mean()


@torch.compile(backend="aot_eager")
def step(scores):
    return MatchedLoss(matcher=Matcher())(scores * 2)


torch.manual_seed(0)
scores = torch.randn(4, 3, requires_grad=True)
loss = step(scores)
loss.backward()
print(f"{loss.item():.5f} {scores.grad.abs().sum().item():.5f}")
