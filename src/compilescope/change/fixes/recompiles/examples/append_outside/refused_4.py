#: because: the function does more with `window` than add to it
import torch


class Window:
    def __init__(self):
        self.kept = []

    def push(self, value):
        self.kept.append(value)


window = Window()


@torch.compile(backend="eager")
def f(x):
    window.push(x.sum())
    return x - torch.stack(window.kept).mean()


for _ in range(3):
    f(torch.ones(3))
