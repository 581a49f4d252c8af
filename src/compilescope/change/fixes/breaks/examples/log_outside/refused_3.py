#: because: what is returned may depend
import torch


class Meter:
    total = 0.0

    def add(self, value):
        self.total += value
        return self.total


meter = Meter()


@torch.compile(backend="eager")
def step_of(x, step):
    y = x.sin() * 2
    if step % 3 == 0:
        print("mean", meter.add(y.mean().item()))
    return y * meter.total


for step in range(4):
    step_of(torch.ones(3), step)
