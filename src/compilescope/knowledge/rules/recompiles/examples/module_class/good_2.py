import torch

class Base(torch.nn.Module):
    def forward(self, x):
        return self.act(x) * 2

class Relu(Base):
    def act(self, x):
        return x.relu()

class Tanh(Base):
    def act(self, x):
        return x.tanh()

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

for result in torch.compile(All([Relu(), Tanh()]), backend="eager")(torch.ones(3)):
    print(result)
