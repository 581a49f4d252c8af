"""A parameter is made inside a module that is exported."""

import torch


class Scale(torch.nn.Module):
    def forward(self, x):
        return x * torch.nn.Parameter(torch.ones(3))  # breaks here


def run():
    return torch.export.export(Scale(), (torch.ones(3),), strict=True).module()(torch.ones(3))


class PlainScale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight


def run_fixed():
    return torch.export.export(PlainScale(), (torch.ones(3),), strict=True).module()(torch.ones(3))
