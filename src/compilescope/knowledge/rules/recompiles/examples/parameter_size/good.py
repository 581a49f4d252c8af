import torch

class Layer(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.weight.sum()

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

layers = All([Layer(size) for size in (3, 4, 5)])
for result in torch.compile(layers, backend="eager")(torch.ones(2)):
    print(result.tolist())
