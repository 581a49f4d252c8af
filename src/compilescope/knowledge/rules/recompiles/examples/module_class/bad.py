import torch

class Block(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)

for inner in (torch.nn.ReLU(), torch.nn.Tanh()):
    print(torch.compile(Block(inner), backend="eager")(torch.ones(3)))
