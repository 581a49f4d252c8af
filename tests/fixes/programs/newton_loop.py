# ideal: while-loop
# Square roots by Newton's method, with a limit of turns.
import torch


def root(a):
    x = a * 0.5 + 0.5
    turn = 0
    while (x * x - a).abs().max() > 1e-4 and turn < 25:
        x = 0.5 * (x + a / x)
        turn += 1
    return x


solve = torch.compile(root, backend="eager")
print(solve(torch.tensor([4.0, 9.0, 2.0])))
print(solve(torch.tensor([1.0, 100.0, 0.25])))
