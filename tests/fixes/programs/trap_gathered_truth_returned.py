# ideal: none
# trap: the gathered truth is returned, a bool of Python where there are no parts
import torch

seen = []


def probe(x, parts):
    loud = False
    for part in parts:
        x = x @ part
        loud = loud or x.max() > 2
    if loud:
        x = x * 0.5
    return x, loud


run = torch.compile(probe, backend="eager")
for k in (0.1, 5.0):
    for parts in ([], [torch.eye(3)], [torch.eye(3), torch.ones(3, 3)]):
        y, loud = run(torch.full((2, 3), k), parts)
        seen.append(type(loud).__name__)
        print(y.sum().item(), seen)
