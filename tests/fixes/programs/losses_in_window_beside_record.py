# ideal: converted-after
# The last losses, as numbers, in a window of fixed length; what the step returns is a dataclass.
from collections import deque
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class State:
    loss: torch.Tensor
    step: int = 0


class Trainer:
    def __init__(self):
        self.model = nn.Linear(6, 1)
        self.window = deque(maxlen=3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.05)
        self.compiled = torch.compile(self.step, backend="eager")

    def step(self, x, y):
        loss = (self.model(x) - y).pow(2).mean()
        self.window.append(loss.item())
        return State(loss=loss)


torch.manual_seed(0)
trainer = Trainer()
for i in range(6):
    g = torch.Generator().manual_seed(i)
    state = trainer.compiled(torch.randn(8, 6, generator=g), torch.randn(8, 1, generator=g))
    trainer.optimizer.zero_grad()
    state.loss.backward()
    trainer.optimizer.step()
    print(f"{sum(trainer.window) / len(trainer.window):.4f}")
