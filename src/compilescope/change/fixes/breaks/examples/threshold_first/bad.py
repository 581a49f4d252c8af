import torch


class Net(torch.nn.Module):
    def __init__(self, layerdrop=0.0):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(2)])
        self.layerdrop = layerdrop

    def forward(self, x):
        for layer in self.layers:
            drop = torch.rand([])
            if self.training and (drop < self.layerdrop):  # skip the layer
                continue
            x = layer(x)
        return x


torch.compile(Net(), backend="eager")(torch.ones(2, 3))
