# ideal: tensor-for-number
"""How many are valid, read as a number, which never has a gradient."""

import torch


def spread(x, valid):
    count = valid.sum().item()
    return x * count


run = torch.compile(spread, backend="eager")
for valid in ([True, False, True], [True, True, True]):
    print(run(torch.tensor([1.0, 2.0, 3.0]), torch.tensor(valid)).tolist())
