# ideal: none
# trap: Python raises where it divides by zero, which a caller relies on
import torch


def scaled(x, limit: float):
    level = x.sum().item()
    if level > -10.0:
        x = x * (limit / level)
    return x * 1.0


run = torch.compile(scaled, backend="eager")
with torch.no_grad():
    for values in ([1.0, 3.0], [-20.0, 3.0], [1.0, -1.0]):
        try:
            print(run(torch.tensor(values), 2.0))
        except ZeroDivisionError:
            print("balanced")
