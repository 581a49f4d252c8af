"""A model with an LSTM, which never calls torch.compile: Dynamo skips its forward."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.out = nn.Linear(16, 5)

    def forward(self, x):
        hidden, _ = self.lstm(self.embedding(x))
        return self.out(torch.relu(hidden))


model = Tagger()
for length in (6, 7, 8):
    print(model(torch.zeros(4, length, dtype=torch.long)).shape)
