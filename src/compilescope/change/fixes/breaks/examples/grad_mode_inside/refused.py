#: because: no method in this file is decorated with a grad mode
import functools

import torch


def twice(method):
    @functools.wraps(method)
    def both(self, x):
        return method(self, method(self, x))

    return both


class Matcher(torch.nn.Module):
    @torch.no_grad()
    @twice
    def forward(self, scores):
        return scores.sin()


class Loss(torch.nn.Module):
    def __init__(self, matcher):
        super().__init__()
        self.matcher = matcher

    def forward(self, scores):
        return self.matcher(scores).sum()


def f(scores):
    return Loss(matcher=Matcher())(scores * 2)


torch.compile(f, backend="eager")(torch.randn(4, 3))
