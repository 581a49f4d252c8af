# ideal: number-outside
"""A sampler whose compiled step tests and rounds the guidance, another number in each pass."""

import torch
import torch.nn as nn


class Denoiser(nn.Module):
    def __init__(self, width=8, classes=3):
        super().__init__()
        self.label = nn.Embedding(classes + 1, width)
        self.inner = nn.Linear(width, width)

    def forward(self, x, label):
        return torch.tanh(self.inner(x) + self.label(label))


class Sampler:
    def __init__(self, model):
        self.model = model
        self.null = 3

    def run(self, label, guidance, steps=3):
        x = torch.ones(len(label), 8)
        for step in range(steps):
            x = x - 0.5 * predict(self.model, x, label, self.null, guidance) / (step + 1)
        return x


@torch.compile(backend="aot_eager")
def predict(model, x, label, null, guidance):
    if guidance == 1.0:
        return model(x, label)
    both = model(torch.cat([x, x]), torch.cat([label, torch.full_like(label, null)]))
    cond, uncond = both.chunk(2)
    scale = round(guidance, 1)
    return uncond + scale * (cond - uncond)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    sampler = Sampler(Denoiser().eval())
    label = torch.tensor([0, 1, 2, 1])
    for guidance in (1.0, 1.51, 3.0, 4.25, 5.0):
        print(f"{guidance}: {sampler.run(label, guidance).sum().item():.4f}")


main()
