# ideal: append-outside
"""A trainer that keeps the losses of all steps in a list of its own."""

import torch


class Trainer:
    def __init__(self):
        self.weight = torch.ones(3, requires_grad=True)
        self.losses = []

    def step(self, x):
        loss = ((self.weight * x) ** 2).mean()
        self.losses.append(loss.detach())
        return loss


trainer = Trainer()
step = torch.compile(trainer.step, backend="aot_eager")
for number in range(5):
    step(torch.full((3,), float(number))).backward()
print([loss.item() for loss in trainer.losses], trainer.weight.grad.tolist())
