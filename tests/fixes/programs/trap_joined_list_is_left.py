# ideal: none
# trap: the list is joined after something that may have changed it
import torch


class Window:
    def __init__(self):
        self.past = [torch.zeros(3)]

    def push(self, x):
        self.past.append(x * 2)
        return x


@torch.compile(backend="eager")
def mix(x, window, past):
    x = window.push(x)
    return torch.stack(past).sum() + x.sum()


window = Window()
for step in range(4):
    print(mix(torch.full((3,), float(step)), window, window.past).item())
