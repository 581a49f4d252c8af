"""Time series forecaster, exported through the company's own backend (which knows few operators)."""
import argparse

import torch
import torch.nn as nn
from torch.fx import GraphModule

KNOWN = {"linear", "add", "mul", "relu", "cat", "sigmoid", "getitem", "mean", "sub", "truediv"}


class UnsupportedOperator(RuntimeError):
    pass


def edge_backend(gm: GraphModule, example_inputs):
    for node in gm.graph.nodes:
        if node.op in ("call_function", "call_method"):
            name = node.target if isinstance(node.target, str) else node.target.__name__
            if name not in KNOWN:
                raise UnsupportedOperator(f"edge-npu: operator {name!r} is not implemented")
    return gm.forward


class NBeatsBlock(nn.Module):
    def __init__(self, back, fore, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(back, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.b, self.f = nn.Linear(hidden, back), nn.Linear(hidden, fore)

    def forward(self, x):
        h = self.net(x)
        return self.b(h), self.f(h)


class NBeats(nn.Module):
    def __init__(self, back=24, fore=6, blocks=2, season=12):
        super().__init__()
        self.blocks = nn.ModuleList(NBeatsBlock(back, fore) for _ in range(blocks))
        self.season = season

    def forward(self, x):
        scale = x.abs().mean(-1, keepdim=True) + 1e-3
        x = x / scale
        total = 0
        for block in self.blocks:
            b, f = block(x)
            x, total = x - b, total + f
        smooth = torch.cumsum(total, -1) / torch.tensor([1.0, 2, 3, 4, 5, 6])
        return smooth * scale


def series(n, t, g):
    phase = torch.rand(n, 1, generator=g) * 6.28
    return torch.sin(phase + torch.arange(t) * 0.52) + 0.1 * torch.randn(n, t, generator=g)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=20)
    ns = ap.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    model = NBeats()
    opt = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(ns.steps):
        s = series(16, 30, g)
        loss = (model(s[:, :24]) - s[:, 24:]).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("trained", round(loss.item(), 3))
    model.eval()
    device_model = torch.compile(model, backend=edge_backend)
    with torch.inference_mode():
        s = series(4, 30, g)
        forecast = device_model(s[:, :24])
    print("forecast", forecast.shape)


if __name__ == "__main__":
    main()
