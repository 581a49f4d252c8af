import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = {}

    def _forward_results(self, x):
        y = x.sin()
        value = y.mean()
        value_2 = y * 2
        return value, value_2

    @torch.compiler.disable(recursive=False)
    def forward(self, x, step):
        value, value_2 = self._forward_results(x)
        self.seen[step] = value
        return value_2


net = torch.compile(Net(), backend="eager")
for step in ("a", "b", "c"):
    net(torch.ones(3), step)
