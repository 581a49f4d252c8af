import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 3

    def forward(self, x):
        self.step += 1
        return x * self.step


compiled = torch.compile(Net(), backend="eager")
for _ in range(4):
    compiled(torch.ones(3))
