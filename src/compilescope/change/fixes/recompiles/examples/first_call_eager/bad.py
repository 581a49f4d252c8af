import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = None

    def forward(self, x):
        if self.cache is None:
            self.cache = torch.arange(3.0)
        return x * self.cache


compiled = torch.compile(Net(), backend="eager")
for _ in range(3):
    compiled(torch.ones(3))
