"""Shows a break in a parent's forward reached through super."""

import torch

#: graphs 4


class Base(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        print("base")  #: break "print(" Failed to trace builtin operator #: category logging
        return y * 2


class Child(Base):
    def forward(self, x):
        return super().forward(x - 1).relu()


torch.compile(Child(), backend="eager")(torch.ones(3))
