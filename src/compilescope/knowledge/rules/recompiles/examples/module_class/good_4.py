import torch

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

both = All([torch.nn.ReLU(), torch.nn.Tanh()])
for result in torch.compile(both, backend="eager")(torch.ones(3)):
    print(result)
