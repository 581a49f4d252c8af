import torch

class Block(torch.nn.Module):
    def __init__(self, has_bias):
        super().__init__()
        self.has_bias = has_bias

    def forward(self, x):
        return x + 1 if self.has_bias else x * 2

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

both = All([Block(True), Block(False)])
for result in torch.compile(both, backend="eager")(torch.ones(3)):
    print(result)
