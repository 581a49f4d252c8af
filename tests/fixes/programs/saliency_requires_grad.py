# ideal: outside-of-compiled, autograd-traced
"""Which pixels matter: the input itself is told to require a gradient."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


def saliency(image):
    image.requires_grad_(True)
    score = model(image).sum()
    (slope,) = torch.autograd.grad(score, image)
    return slope.abs()


f = torch.compile(saliency, backend="aot_eager")
print(f"{f(torch.ones(2, 3)).sum().item():.5f}")
