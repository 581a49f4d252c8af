"""GAN on a ring of Gaussians; the scheduler kills the job after its time slot."""
import math
import os
import signal

import torch
from torch import nn


def mlp(i, o, h=32):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


class GAN(nn.Module):
    def __init__(self, z=8):
        super().__init__()
        self.z, self.g, self.d = z, mlp(z, 2), mlp(2, 1)

    def d_loss(self, real, noise):
        fake = self.g(noise).detach()
        return (nn.functional.softplus(-self.d(real)) + nn.functional.softplus(self.d(fake))).mean()

    def g_loss(self, noise):
        return nn.functional.softplus(-self.d(self.g(noise))).mean()


def ring(n):
    a = torch.randint(8, (n,)) * (math.pi / 4)
    return torch.stack([a.cos(), a.sin()], 1) + 0.05 * torch.randn(n, 2)


def main(slot=12):
    torch.manual_seed(0)
    gan = GAN()
    d_loss = torch.compile(gan.d_loss, backend="aot_eager")
    g_loss = torch.compile(gan.g_loss, backend="aot_eager")
    od = torch.optim.Adam(gan.d.parameters(), 1e-3, betas=(0.5, 0.9))
    og = torch.optim.Adam(gan.g.parameters(), 1e-3, betas=(0.5, 0.9))
    for step in range(100):
        ld = d_loss(ring(64), torch.randn(64, gan.z))
        od.zero_grad()
        ld.backward()
        od.step()
        lg = g_loss(torch.randn(64, gan.z))
        og.zero_grad()
        lg.backward()
        og.step()
        if step % 5 == 0:
            print(f"{step} d {ld.item():.3f} g {lg.item():.3f}", flush=True)
        if step == slot:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
