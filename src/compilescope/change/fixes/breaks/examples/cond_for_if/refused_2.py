#: because: sets `self.steps`
import torch


class Count(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        if x.sum() > 0:
            self.steps = self.steps + 1
            x = x @ x
        return x + 1


torch.compile(Count(), backend="eager")(torch.ones(3, 3))
