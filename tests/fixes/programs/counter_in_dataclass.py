# ideal: none
# sound: dynamic-true
from dataclasses import dataclass
import torch


@dataclass
class State:
    step: int = 1
    scale: float = 1.0


def update(x, state):
    state.step += 1
    return x * state.scale / state.step


run = torch.compile(update, backend="eager")
state = State()
for n in range(4):
    print(run(torch.ones(2, 4), state).sum().item())
