#: because: is part of another function's graph, and does more than keep what it is given
import torch


class Window:
    def __init__(self):
        self.kept = []

    def push(self, value):
        self.kept.append(value)
        return len(self.kept)


window = Window()


@torch.compile(backend="eager")
def f(x):
    return x * window.push(x.sum())


for _ in range(3):
    f(torch.ones(3))
