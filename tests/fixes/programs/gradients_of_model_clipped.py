# ideal: where-for-if
# Gradients of a model's parameters are scaled, those that there are.
import torch
import torch.nn as nn

torch.manual_seed(0)


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 2))
        self.model[1].requires_grad_(False)
        self.fast = torch.compile(self.clip, backend="eager")

    def clip(self):
        total = torch.zeros(())
        for p in self.model.parameters():
            if p.grad is not None:
                total = total + p.grad.pow(2).sum()
        total = total.sqrt()
        if total > 1.0:
            for p in self.model.parameters():
                if p.grad is not None:
                    p.grad.mul_(1.0 / (total + 1e-6))
        return total


t = Trainer()
for s in (0.1, 10.0):
    t.model.zero_grad(set_to_none=False)
    t.model(torch.ones(3, 4) * s).mean().mul(s).backward()
    print(
        round(t.fast().item(), 4),
        round(t.model[0].weight.grad.sum().item(), 4),
        t.model[1].weight.grad,
    )
