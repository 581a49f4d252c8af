# ideal: none
# trap: the later tests are not reached once one holds, and they count
import torch

seen = []


def positive(t):
    seen.append(len(seen))
    return t.sum() > 0


@torch.compile(backend="eager")
def f(ts, x):
    if any(positive(t) for t in ts):
        x = x * 2
    return x + 1


print(f([torch.ones(2), torch.ones(2)], torch.ones(3)).tolist(), len(seen))
print(f([-torch.ones(2), torch.ones(2)], torch.ones(3)).tolist(), len(seen))
