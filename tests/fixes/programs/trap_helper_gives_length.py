# ideal: none
# trap: the helper hands the length back, and the step uses it
"""The helper hands the list's new length back, and the step uses it."""

import torch


class Queue:
    def __init__(self):
        self.items = []

    def push(self, v):
        self.items.append(v)
        return len(self.items)


queue = Queue()


@torch.compile(backend="eager")
def step(x):
    n = queue.push(x.sum())
    return x * n


for i in range(5):
    print(step(torch.ones(2) * i))
