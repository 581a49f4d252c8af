import torch

class Block(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return x.relu() if self.kind == "relu" else x.tanh()

for kind in ("relu", "tanh"):
    print(torch.compile(Block(kind), backend="eager")(torch.ones(3)))
