import torch


# Twice, and once more.
def f(x):
    # What comes out.
    class Pair:
        def __init__(self, a, b):
            self.a = a
            self.b = b  # the other

    pair = Pair(x + 1, x * 2)
    return pair.a * pair.b


torch.compile(f, backend="eager")(torch.ones(3))
