# ideal: none
# trap: `any` takes from the stream up to the first that holds; the caller reads on from there
import torch


@torch.compile(backend="eager")
def f(x, parts):
    stream = iter(parts)
    if any(t.sum() > 0 for t in stream):
        x = x * 2
    return x, list(stream)


parts = [-torch.ones(2), torch.ones(2), torch.zeros(2), torch.ones(2)]
x, rest = f(torch.ones(3), parts)
print(x.tolist(), [t.tolist() for t in rest])
