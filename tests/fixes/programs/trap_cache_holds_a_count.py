# ideal: none
# sound: dynamic-true raised-limit mark-unbacked
# trap: beside two tensors the cache holds a number, which cannot be marked
"""A memory of tensors and a count, which is empty at first and grows by joining."""

import torch
import torch.nn as nn


class Reader(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x, memory):
        keys, values = self.key(x), self.value(x)
        if memory:
            keys = torch.cat([memory[0], keys])
            values = torch.cat([memory[1], values])
        read = torch.softmax(x @ keys.T, -1) @ values
        return read, [keys, values, 3]


class Session:
    def __init__(self, reader):
        self.reader = reader
        self.memory = []

    @torch.no_grad()
    def tell(self, x):
        read, self.memory = self.reader(x, self.memory)
        return read.sum().item()


def main():
    torch.manual_seed(0)
    reader = torch.compile(Reader(), backend="eager", dynamic=False)
    for _ in range(2):
        session = Session(reader)
        told = [session.tell(torch.randn(3, 6)) for _ in range(3)]
        print(" ".join(f"{each:.3f}" for each in told))


main()
