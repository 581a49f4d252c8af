import torch

class Block(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return x.relu() if self.kind == "relu" else x.tanh()

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

both = All([Block("relu"), Block("tanh")])
for result in torch.compile(both, backend="eager")(torch.ones(3)):
    print(result)
