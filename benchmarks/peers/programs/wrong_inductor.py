"""Inductor computes a relu wrongly: torch's own bug for testing. Status 1 where it does."""

import os
import sys

import torch
from torch import nn

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(32, 32)
        self.outer = nn.Linear(32, 32)

    def forward(self, x):
        inner = self.inner(x).sigmoid()
        gate = torch.relu(inner - 0.5)
        return self.outer(gate * x).cos()


def build():
    torch.manual_seed(0)
    return Gate().eval(), (torch.randn(8, 32),)


def main():
    model, args = build()
    backend = os.environ.get("TORCH_COMPILE_BACKEND", "inductor")
    with torch.no_grad():
        right = model(*args)
        out = torch.compile(model, backend=backend)(*args)
    if not torch.allclose(out, right, rtol=1e-4, atol=1e-5):
        print("other numbers")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
