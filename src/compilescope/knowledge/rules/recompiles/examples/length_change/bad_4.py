import torch

class Net(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Identity() for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x) + 1
        return x

for depth in (1, 2):
    print(torch.compile(Net(depth), backend="eager")(torch.ones(3)))
