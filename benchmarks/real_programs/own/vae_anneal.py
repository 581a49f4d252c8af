"""beta-VAE with KL annealing: the warm-up is a Python float that goes into the compiled loss."""
import argparse, math, os, tempfile
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class VAEOutput:
    recon: torch.Tensor
    mu: torch.Tensor
    logvar: torch.Tensor


class VAE(nn.Module):
    def __init__(self, data=64, hidden=48, latent=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(data, hidden), nn.SiLU(), nn.Linear(hidden, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, data))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return VAEOutput(self.dec(z), mu, logvar)


def elbo(out: VAEOutput, x, beta, free_bits):
    recon = F.mse_loss(out.recon, x, reduction="none").sum(-1)
    kl = -0.5 * (1 + out.logvar - out.mu**2 - out.logvar.exp())
    if beta < 1.0:
        kl = kl.clamp(min=free_bits * (1 - beta))
    return (recon + beta * kl.sum(-1)).mean(), recon.mean(), kl.sum(-1).mean()


def cycle_beta(step, period, top=1.0):
    """Fu et al. 2019: half a period of ramp, half at the top."""
    return min(top, 2.0 * top * (step % period) / period)


class Model(nn.Module):
    def __init__(self, vae, free_bits=0.05):
        super().__init__()
        self.vae, self.free_bits = vae, free_bits

    def forward(self, x, beta):
        return elbo(self.vae(x), x, beta, self.free_bits)


def toy_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    basis = torch.randn(3, 64, generator=g)
    return torch.tanh(torch.randn(n, 3, generator=g) @ basis)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--period", type=int, default=16)
    a = p.parse_args()
    torch.manual_seed(7)
    train = DataLoader(TensorDataset(toy_data(256, 0)), 32, shuffle=True, drop_last=True)
    valid = toy_data(64, 1)
    model = Model(VAE())
    compiled = torch.compile(model, backend="aot_eager")
    opt = torch.optim.Adam(model.parameters(), 2e-3)
    step = 0
    for epoch in range(a.epochs):
        model.train()
        for (x,) in train:
            beta = cycle_beta(step, a.period)
            loss, recon, kl = compiled(x, beta)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            step += 1
        model.eval()
        with torch.no_grad():
            vloss, vrec, vkl = compiled(valid, 1.0)
        print(f"{epoch} beta {beta:.2f} loss {loss:.2f} recon {recon:.2f} kl {kl:.2f} | valid {vloss:.2f} {vrec:.2f} {vkl:.2f}")
    with tempfile.TemporaryDirectory() as d:
        torch.save(model.vae.state_dict(), os.path.join(d, "vae.pt"))
    with torch.no_grad():
        print("sample norm", round(float(model.vae.dec(torch.randn(2, 4)).norm()), 2))


if __name__ == "__main__":
    main()
