# ideal: none
# trap: the loss is one number for each row, which `min` compares only for one row
import torch
import torch.nn.functional as F


def nearest(x, y):
    outs = [x * 0.5, x + 1]
    return min(outs, key=lambda o: F.mse_loss(o, y, reduction="none").sum(1))


run = torch.compile(nearest, backend="eager")
with torch.no_grad():
    for scale in (1.0, -2.0):
        print(run(torch.ones(1, 3) * scale, torch.ones(1, 3)).tolist())
