import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)

    def forward(self, ids):
        return self.embed(ids).sum(1)


model = Tagger()
model.compile(backend="eager")
for words in (10, 12, 14):
    model.embed = nn.Embedding(words, 4)
    model(torch.arange(6).view(2, 3))
