import torch

class Net(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Identity() for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x) + 1
        return x

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

for result in torch.compile(All([Net(1), Net(2)]), backend="eager")(torch.ones(3)):
    print(result)
