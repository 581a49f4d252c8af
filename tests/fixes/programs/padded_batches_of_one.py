# ideal: none
# sound: mark-unbacked
"""Batches padded to their longest sequence: the sizes change."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)
        self.mix = nn.Linear(4, 4)

    def forward(self, ids):
        return self.mix(self.embed(ids)).relu().mean(1)


torch.manual_seed(0)
encode = torch.compile(Encoder(), backend="eager")
for longest in (3, 5, 7, 9):
    ids = pad_sequence([torch.arange(n) for n in range(2, longest)], batch_first=True)
    print(round(encode(ids).sum().item(), 4))
