import torch

class Power(torch.nn.Module):
    def __init__(self, exponent):
        super().__init__()
        self.exponent = exponent

    def forward(self, x):
        return x**self.exponent

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

for result in torch.compile(All([Power(2), Power(3)]), backend="eager")(torch.ones(3)):
    print(result)
