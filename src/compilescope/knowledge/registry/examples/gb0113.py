"""`super()` leads to an attribute that no base class has."""

import torch


class Base:
    pass


class Child(Base):
    def apply(self, x):
        return super().scale(x)  # breaks here


child = Child()


def f(x):
    return child.apply(x)


def inputs():
    return (torch.ones(3),)
