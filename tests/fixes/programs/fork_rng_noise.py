# ideal: with-outside
import torch


class Augment(torch.nn.Module):
    """The same noise each time, and nobody else's random numbers touched."""

    def forward(self, x):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1234)
            noise = torch.randn_like(x)
            y = (x + 0.1 * noise).clamp(-1, 1)
        return y


torch.manual_seed(0)
augment = torch.compile(Augment(), backend="eager")
print(augment(torch.zeros(3)).tolist())
print(torch.rand(2).tolist())
