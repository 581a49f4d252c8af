"""Never calls torch.compile."""

import sys

import torch
from parcel.maths import triple


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.relu(self.linear(x))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        print("half way")
        return x.sum()

    def score(self, x):
        return (x * self.blocks[0].linear.weight.sum()).sum()


def loss_of(out):
    return out.square()


def raising(x):
    x = x + 1
    raise ValueError("my own mistake")


def main():
    torch.manual_seed(0)
    net = Net()
    x = torch.randn(2, 3)
    loss = loss_of(net(x)) + net.score(x) + triple(x).sum()
    loss.backward()
    print(f"{loss.item():.4f}", sys.argv[1:], __name__, __file__.rsplit("/", 1)[-1])
    if "raise" in sys.argv:
        raising(x)


if __name__ == "__main__":
    main()
