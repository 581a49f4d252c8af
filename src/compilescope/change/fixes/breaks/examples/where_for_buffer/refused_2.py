#: because: a branch does more than set `freq`
import torch


class Rope(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.short, self.long = torch.ones(3), torch.full((3,), 2.0)
        self.freq, self.switches = self.short, 0

    def forward(self, x):
        if x.max() > 16:
            self.switches = self.switches + 1
            self.freq = self.long
        else:
            self.freq = self.short
        return x * self.freq


torch.compile(Rope(), backend="eager")(torch.ones(3))
