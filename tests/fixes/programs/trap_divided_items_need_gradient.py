# ideal: none
# trap: where all of them are zero, the division that is thrown away has NaN for a gradient
import torch

weight = torch.zeros(3, requires_grad=True)


@torch.compile(backend="eager")
def scaled(xs):
    parts = [x * weight for x in xs]
    total = torch.stack([p.norm() for p in parts]).norm()
    if total > 1:
        parts = [p / total for p in parts]
    return torch.stack(parts).sum()


for start in (0.0, 2.0):
    weight.data.fill_(start)
    weight.grad = None
    scaled([torch.ones(3), torch.full((3,), 2.0)]).backward()
    print([round(g, 4) for g in weight.grad.tolist()])
