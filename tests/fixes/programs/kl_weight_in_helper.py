# ideal: tensor-argument-rounded
"""A loss whose helper scales and limits by the weight of its second term, which ramps up."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, data=12, latent=3):
        super().__init__()
        self.enc = nn.Linear(data, 2 * latent)
        self.dec = nn.Linear(latent, data)

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        return self.dec(mu), mu, logvar


def elbo(recon, mu, logvar, x, beta, free_bits):
    error = F.mse_loss(recon, x)
    kl = -0.5 * (1 + logvar - mu**2 - logvar.exp())
    kl = kl.clamp(min=free_bits * (1 - beta)).mean()
    return error + beta * kl, error


class Task(nn.Module):
    def __init__(self, model, free_bits=0.05):
        super().__init__()
        self.model, self.free_bits = model, free_bits

    def forward(self, x, beta):
        recon, mu, logvar = self.model(x)
        return elbo(recon, mu, logvar, x, beta, self.free_bits)


def weight_at(step, period=8):
    return min(1.0, 0.1 + step / period)


def main():
    torch.manual_seed(0)
    task = Task(Encoder())
    compiled = torch.compile(task, backend="aot_eager", dynamic=False)
    optimizer = torch.optim.SGD(task.parameters(), lr=0.05)
    for step in range(6):
        loss, error = compiled(torch.randn(16, 12), weight_at(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{step} loss {loss.item():.4f} error {error.item():.4f} {loss.dtype}")


main()
