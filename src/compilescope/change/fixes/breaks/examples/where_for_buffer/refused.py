#: because: the two sides set different things
import torch


class Rope(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.short, self.long = torch.ones(3), torch.full((3,), 2.0)
        self.freq = self.last = self.short

    def forward(self, x):
        if x.max() > 16:
            self.freq = self.long
        else:
            self.last = self.short
        return x * self.freq


torch.compile(Rope(), backend="eager")(torch.ones(3))
