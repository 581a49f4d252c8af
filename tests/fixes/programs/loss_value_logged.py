# ideal: number-for-output
"""The loss is read as a number, logged, and used to weigh the result."""

import torch


def criterion(logits, target):
    loss = torch.nn.functional.cross_entropy(logits, target)
    value = loss.item()
    print(f"loss={value:.4f}")
    return loss / value


compiled = torch.compile(criterion, backend="aot_eager")
torch.manual_seed(0)
logits = torch.randn(4, 3, requires_grad=True)
for _ in range(2):
    compiled(logits, torch.tensor([0, 1, 2, 1])).backward()
print(round(logits.grad.abs().sum().item(), 5))
