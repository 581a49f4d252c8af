# ideal: append-outside
"""A trainer class that logs its losses through a helper object."""

import torch
from torch import nn


class History:
    def __init__(self):
        self.losses = []

    def record(self, loss):
        self.losses.append(loss.detach())

    def mean(self):
        return torch.stack(self.losses).mean().item()


class Trainer:
    def __init__(self, model):
        self.model = model
        self.history = History()
        self.step = torch.compile(self._step, backend="eager")

    def _step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.history.record(loss)
        return loss

    def fit(self, steps):
        for i in range(steps):
            x = torch.full((4, 3), float(i))
            self.step(x, x[:, :1]).backward()


torch.manual_seed(0)
trainer = Trainer(nn.Linear(3, 1))
trainer.fit(5)
print(round(trainer.history.mean(), 4), len(trainer.history.losses))
