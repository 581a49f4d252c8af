# ideal: none
# sound: dynamic-true raised-limit
# trap: the division is guarded by the test; done first, it would raise for zero
"""A temperature of zero means the largest: the compiled step divides on the other path alone."""

import torch
import torch.nn as nn


class Head(nn.Module):
    def __init__(self, width=8, classes=5):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        return self.out(torch.relu(self.inner(x)))


@torch.compile(backend="eager")
def choose(head, x, temperature):
    logits = head(x)
    if temperature == 0:
        return (logits == logits.amax(-1, keepdim=True)).float()
    sharpness = 1 / temperature
    return torch.softmax(logits * sharpness, -1)


class Policy:
    def __init__(self, head):
        self.head = head
        self.temperature = 1.5

    def cool(self):
        self.temperature = max(0.0, self.temperature - 0.5)

    def act(self, x):
        return choose(self.head, x, self.temperature)


@torch.no_grad()
def main():
    torch.manual_seed(0)
    policy = Policy(Head().eval())
    for _ in range(5):
        chosen = policy.act(torch.ones(2, 8))
        print(f"{policy.temperature}: {chosen.amax().item():.4f}")
        policy.cool()


main()
