# ideal: none
# trap: once the truth is known no more numbers are drawn for it
import torch

weights = [torch.eye(3) * k for k in (1.0, 2.0, 3.0)]


def probe(x, parts):
    loud = False
    for part in parts:
        x = x @ part
        loud = loud or (x + torch.randn(3)).max() > 2
    if loud:
        x = x * 0.5
    return x + torch.randn(3)


run = torch.compile(probe, backend="eager")
for k in (0.1, 1.0, 5.0):
    torch.manual_seed(0)
    print(run(torch.full((2, 3), k), weights))
