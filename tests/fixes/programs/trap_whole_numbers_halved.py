# ideal: none
# trap: whole numbers are halved in place, which raises; a copy would round them
import torch


def halve(counts, limit: int):
    total = sum(c.sum() for c in counts)
    if total > limit:
        for c in counts:
            c.mul_(0.5)
    return total


run = torch.compile(halve, backend="eager")
for scale in (1, 2):
    counts = [torch.arange(3) * scale, torch.ones(2, dtype=torch.int64)]
    try:
        print(run(counts, 6).item(), [c.tolist() for c in counts])
    except RuntimeError as error:
        print(type(error).__name__, [c.tolist() for c in counts])
