import torch


class Rope(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.short = torch.ones(3)
        self.register_buffer("freq", self.short, persistent=False)

    def make(self, factor):
        return torch.full((3,), factor), 1.0

    def forward(self, x, device="cpu"):
        # Long texts need other frequencies.
        if not hasattr(self, "long"):
            self.long, _ = self.make(2.0)
        # It may have been moved.
        self.short = self.short.to(device)
        self.register_buffer(
            "freq", torch.where(x.max() > 16, self.long, self.short), persistent=False
        )
        return x * self.freq


rope = torch.compile(Rope(), backend="eager")
for top in (3.0, 30.0):
    rope(torch.full((3,), top))
