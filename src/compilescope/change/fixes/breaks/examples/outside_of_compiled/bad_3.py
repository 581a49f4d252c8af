#: note: torch.compile as a decorator of a method looks through the public one
import torch


class Trainer:
    def __init__(self):
        self.layer = torch.nn.Linear(3, 1)

    @torch.compile(backend="eager")
    def step(self, x):
        loss = self.layer(x).square().mean()
        loss.backward()
        return loss


Trainer().step(torch.ones(2, 3))
