# ideal: masked-loop
# A fixed point, left as soon as it has settled.
import torch


def settle(x, rate=0.5):
    for _ in range(8):
        new = x - rate * x.sin()
        if (new - x).abs().max() < 0.05:
            break
        x = new
    return x * 2


go = torch.compile(settle, backend="eager")
for start in (0.01, 0.5, 2.0):
    print(go(torch.full((3,), start)))
