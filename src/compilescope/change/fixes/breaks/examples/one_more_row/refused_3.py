#: because: no module says whether it trains
import torch


@torch.compile(backend="eager")
def f(x, norm, longer):
    idx = torch.where(longer)[0]
    if len(idx) > 0:
        x[idx] = norm(x[idx])
    return x + 1


with torch.no_grad():
    norm = torch.nn.BatchNorm1d(2).eval()
    f(torch.ones(4, 2), norm, torch.tensor([True, False, True, False]))
