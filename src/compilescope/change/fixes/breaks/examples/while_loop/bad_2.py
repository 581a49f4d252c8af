#: note: A count is carried as a tensor, where nobody asks for it later.
import torch


def root(a):
    turn = 0
    x = a * 0.5
    while (x * x - a).abs().max() > 1e-3 and turn < 20:
        x = 0.5 * (x + a / x)
        turn += 1
    return x


torch.compile(root, backend="eager")(torch.full((3,), 4.0))
