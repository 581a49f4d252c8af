# ideal: none
# trap: what is logged inside the lock must come between the two others
import torch


class Section:
    def __init__(self):
        self.seen = []

    def __enter__(self):
        self.seen.append(len(open(__file__).read()) > 0)
        print("enter")
        return self

    def __exit__(self, *error):
        print("leave")
        return False


section = Section()


def f(x):
    y = x + 1
    with section:
        y = y * 2
    return y.sin()


print(torch.compile(f, backend="eager")(torch.ones(2)).tolist())
