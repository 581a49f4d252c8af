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

for bias in (True, False):
    print(torch.compile(Net(bias), backend="eager")(torch.ones(3)).tolist())
