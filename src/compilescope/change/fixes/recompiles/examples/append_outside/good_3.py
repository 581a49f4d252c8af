import torch


class Meter:
    def update(self, v):
        self.last = v


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.meter = Meter()

    def _forward_results(self, x):
        y = x.sin()
        value = y.mean()
        value_2 = y.max()
        value_3 = y * 2
        return value, value_2, value_3

    @torch.compiler.disable(recursive=False)
    def forward(self, x, seen):
        value, value_2, value_3 = self._forward_results(x)
        seen.append(value)
        self.meter.update(value_2)
        return value_3


net = torch.compile(Net(), backend="eager")
seen = []
for _ in range(3):
    net(torch.ones(3), seen)
