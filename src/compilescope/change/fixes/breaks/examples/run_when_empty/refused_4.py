#: because: `mask` is read later
import torch


@torch.compile(backend="eager")
def f(x, weight):
    chosen = x.argmax(dim=-1)
    out = torch.zeros_like(x)
    for k in torch.unique(chosen):
        mask = chosen == k
        out[mask] = x[mask] @ weight[k]
    return out, mask


f(torch.eye(4)[:2], torch.ones(4, 4, 4))
