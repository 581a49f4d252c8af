# ideal: async-assert
"""Every output of a network with several heads is checked before it is used."""

import torch


class Heads(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.heads = torch.nn.ModuleList([torch.nn.Linear(4, n) for n in (2, 3)])

    def forward(self, x):
        outs = [head(x) for head in self.heads]
        if not all(torch.isfinite(out).all() for out in outs):
            raise RuntimeError("a head overflowed")
        return torch.cat(outs, 1)


heads = torch.compile(Heads(), backend="aot_eager")
print(heads(torch.ones(2, 4)).sum().item())
try:
    heads(torch.full((2, 4), float("inf")))
except RuntimeError as error:
    print("stopped:", error)
