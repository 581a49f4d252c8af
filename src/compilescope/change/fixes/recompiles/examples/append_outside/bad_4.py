import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = {}

    def forward(self, x, step):
        y = x.sin()
        self.seen[step] = y.mean()
        return y * 2


net = torch.compile(Net(), backend="eager")
for step in ("a", "b", "c"):
    net(torch.ones(3), step)
