# ideal: number-for-size
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(8, 8)

    @staticmethod
    def indices(mask):
        counts = mask.long().sum(dim=1)
        most = counts.max()
        picked = mask.nonzero(as_tuple=True)
        local = torch.arange(most, device=mask.device) < counts.unsqueeze(dim=-1)
        return most, picked, local.nonzero(as_tuple=True)

    def gathered(self, x, most, picked, local):
        only = x.new_zeros(x.shape[0], most, x.shape[2])
        only[local] = x[picked]
        return only

    def forward(self, x, mask, any_picked):
        keys = self.key(x)
        if any_picked:
            most, picked, local = self.indices(mask)
            only = self.gathered(keys, most, picked, local)
            scores = torch.einsum("bsd,bld->bsl", keys, only)
            keys = keys + torch.bmm(scores.softmax(-1), only).narrow(1, 0, 4)
        return keys.tanh()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attention(), Attention()])

    def forward(self, x, mask):
        picked = mask > 0
        any_picked = picked.flatten().any().item()
        for layer in self.layers:
            x = layer(x, picked, any_picked)
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 8)
        self.encoder = Encoder()

    def forward(self, x, mask):
        return self.encoder(self.embed(x), mask * 2 - 1)


torch.manual_seed(0)
model = torch.compile(Model().eval(), backend="eager")
mask = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0]])
with torch.no_grad():
    for _ in range(2):
        print(f"{model(torch.randn(2, 4, 8), mask).sum().item():.4f}")
    print(f"{model(torch.randn(2, 4, 8), torch.zeros_like(mask)).sum().item():.4f}")
