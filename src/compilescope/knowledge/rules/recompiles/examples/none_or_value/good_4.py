import torch

class Net(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3, bias=bias)
        torch.nn.init.ones_(self.inner.weight)
        if bias:
            torch.nn.init.ones_(self.inner.bias)

    def forward(self, x):
        return self.inner(x)

class All(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, x):
        return [part(x) for part in self.parts]

for result in torch.compile(All([Net(True), Net(False)]), backend="eager")(torch.ones(3)):
    print(result.tolist())
