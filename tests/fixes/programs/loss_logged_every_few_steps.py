# ideal: log-outside
"""A trainer whose compiled loss logs every few steps, with numbers that it only needs there."""

import logging
import sys

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
log = logging.getLogger("train")


class Trainer:
    def __init__(self, model, log_every=3):
        self.model = model
        self.log_every = log_every
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        self.loss_of = torch.compile(self._loss, backend="aot_eager")

    def _loss(self, x, y, step):
        error = (self.model(x) - y).square().mean()
        penalty = sum(each.square().sum() for each in self.model.parameters())
        loss = error + 1e-4 * penalty
        if step % self.log_every == 0:
            weights = torch.cat([each.detach().flatten() for each in self.model.parameters()])
            share, largest = error / loss, weights.abs().max()
            numbers = (step, loss.item(), share.item(), largest.item())
            log.info("step %d loss %.4f share %.4f largest %.4f", *numbers)
        return loss

    def fit(self, steps):
        for step in range(steps):
            x = torch.randn(8, 4)
            loss = self.loss_of(x, x.sum(1, keepdim=True), step)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


torch.manual_seed(0)
Trainer(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))).fit(7)
