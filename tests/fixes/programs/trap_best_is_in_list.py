# ideal: none
# trap: the best is one of the list, and the caller asks which
import torch


def pick(x):
    rows = [x.sin(), x.cos(), x * 0.5]
    best = max(rows, key=lambda row: row.norm())
    return best, rows


run = torch.compile(pick, backend="eager")
with torch.no_grad():
    for scale in (0.1, 3.0):
        best, rows = run(torch.ones(3) * scale)
        print([row is best for row in rows])
