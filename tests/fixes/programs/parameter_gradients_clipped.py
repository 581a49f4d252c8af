# ideal: where-for-if
# A helper of a training loop scales the gradients that lie in the parameters it is given.
import torch


def clip(params, limit: float):
    total = torch.sqrt(sum((p.grad**2).sum() for p in params))
    if total > limit:
        for p in params:
            p.grad.mul_(limit / (total + 1e-6))
    return total


run = torch.compile(clip, backend="eager")
torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
for scale in (0.1, 5.0):
    model.zero_grad()
    (model(torch.randn(8, 4) * scale) ** 2).mean().backward()
    norm = run(list(model.parameters()), 1.0)
    print(round(norm.item(), 4), [round(p.grad.sum().item(), 4) for p in model.parameters()])
