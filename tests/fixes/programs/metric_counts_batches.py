# ideal: any
import torch


class Mean:
    def __init__(self):
        self.total = None
        self.count = 0

    def update(self, values):
        self.total = values.sum() if self.total is None else self.total + values.sum()
        self.count += values.numel()
        return self.total / self.count


metric = Mean()


@torch.compile(backend="eager")
def evaluate(x):
    return metric.update(x.tanh())


for n in range(5):
    print(f"{evaluate(torch.full((4,), float(n))).item():.6f}")
