# ideal: none
# sound: dynamic-true
import math

import torch


def update(weight, grad, lr, momentum=0.9):
    return weight - lr * (grad + momentum * grad)


step = torch.compile(
    update,
    backend="aot_eager",
)

weight, grad = torch.ones(4), torch.full((4,), 0.5)
for n in range(4):
    rate = 0.1 * math.exp(-n)
    weight = step(weight, grad, rate)
    print(f"{n} {weight.sum().item():.6f}")
