# ideal: none
# sound: raised-limit dynamic-true
# trap: the compiled update also records the rate; as a tensor it would be recorded as one
"""An update that multiplies by a number and tells its caller which one it was."""

import json

import torch
import torch.nn as nn


class Record:
    def __init__(self):
        self.rates = []

    def text(self):
        return json.dumps(self.rates)


@torch.compile(backend="eager")
def update(params, grads, lr):
    for p, g in zip(params, grads):
        p.sub_(g, alpha=lr)
    return {"rate": lr, "norm": sum(p.abs().sum() for p in params)}


def gradients(model, x):
    loss = model(x).pow(2).mean()
    return torch.autograd.grad(loss, list(model.parameters()))


def main():
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    record = Record()
    for step in range(4):
        grads = gradients(model, torch.randn(8, 4))
        weights = [p.data for p in model.parameters()]
        told = update(weights, grads, 0.1 / (step + 1))
        record.rates.append(told["rate"])
        print(f"{step} norm {told['norm'].item():.4f}")
    print(record.text())


main()
