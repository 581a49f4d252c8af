# ideal: outside-of-compiled
"""The whole training step is compiled, backward included; what comes back needs no gradient."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
weights = torch.zeros(4, 2, requires_grad=True)
inputs = torch.randn(8, 4)
labels = torch.randint(0, 2, (8,))


def loss_and_grad(x, y):
    logits = x @ weights
    loss = F.cross_entropy(logits, y)
    loss.backward()
    return loss.detach()


compiled = torch.compile(loss_and_grad, backend="eager")
for _ in range(3):
    weights.grad = None
    print(f"{compiled(inputs, labels).item():.4f} {weights.grad.norm().item():.4f}")
