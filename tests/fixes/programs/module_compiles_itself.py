# ideal: mark-dynamic
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.compile(backend="eager")

    def forward(self, x):
        return self.lin(x).relu()


def main():
    torch.manual_seed(0)
    model = Net()
    for n in (3, 5, 7):
        print(model(torch.ones(n, 4)).sum().item())


if __name__ == "__main__":
    main()
