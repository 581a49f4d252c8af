import torch

class Block(torch.nn.Module):
    def __init__(self, has_bias):
        super().__init__()
        self.has_bias = has_bias

    def forward(self, x):
        return x + 1 if self.has_bias else x * 2

for flag in (True, False):
    print(torch.compile(Block(flag), backend="eager")(torch.ones(3)))
